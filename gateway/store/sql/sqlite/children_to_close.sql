SELECT s.id FROM sessions AS s
 WHERE s.parent = ? AND s.parent <> ''
   AND (s.status <> 'idle'
        OR EXISTS (SELECT 1 FROM inbox AS i WHERE i.session_id = s.id AND i.state = 'queued'))
