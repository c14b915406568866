SELECT session_id FROM inbox
 WHERE channel = ? AND workspace = ? AND conversation = ? AND message_id = ? AND kind = ?
