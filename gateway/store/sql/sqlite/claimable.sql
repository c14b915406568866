SELECT id FROM (
  SELECT id, updated_at FROM sessions
   WHERE status IN ('running', 'ready') AND (status = 'ready' OR lease_until <= :now)
  UNION
  SELECT s.id, s.updated_at FROM inbox AS i JOIN sessions AS s ON s.id = i.session_id
   WHERE i.state = 'queued' AND i.kind = 'message' AND s.status = 'idle'
) ORDER BY updated_at LIMIT :limit
