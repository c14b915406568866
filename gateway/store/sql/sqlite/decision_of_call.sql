SELECT id, actor, decided_by
  FROM pendings
 WHERE session_id = ? AND call_id = ? AND current = 1 AND state IN ('approved', 'answered')
 ORDER BY decided_at DESC, id LIMIT 1
