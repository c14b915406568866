SELECT seq, body FROM messages WHERE session_id = ? ORDER BY seq DESC LIMIT ?
