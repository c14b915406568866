UPDATE pendings SET current = 0 WHERE session_id = ? AND current = 1 RETURNING state
