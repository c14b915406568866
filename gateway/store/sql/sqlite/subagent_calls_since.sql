SELECT count(*) FROM inbox WHERE channel = 'subagent' AND workspace = ? AND received_at > ?
