SELECT thread, session_id FROM threads
 WHERE channel = ? AND workspace = ? AND conversation = ?
 ORDER BY thread DESC LIMIT 200
