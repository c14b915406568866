SELECT number FROM turns WHERE session_id = ? AND message_id = ? ORDER BY number LIMIT 1
