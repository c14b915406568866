SELECT count(*) FROM inbox WHERE channel = 'subagent' AND workspace = ? AND turn = ?
