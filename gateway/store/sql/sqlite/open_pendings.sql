SELECT id FROM pendings WHERE session_id = ? AND current = 1 AND state = 'open'
