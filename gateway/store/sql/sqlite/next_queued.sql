SELECT id, message_id, body FROM inbox WHERE session_id = ? AND state = 'queued' ORDER BY id LIMIT 1
