SELECT session_id FROM inbox
 WHERE channel = 'subagent' AND workspace = ? AND conversation = ? AND message_id = ? AND kind = 'message'
