SELECT body FROM messages WHERE session_id = ? AND seq >= ? ORDER BY seq LIMIT ?
