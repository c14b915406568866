SELECT message_id FROM inbox
 WHERE channel = ? AND workspace = ? AND conversation = ? AND kind = 'message'
 ORDER BY message_id DESC LIMIT 20
