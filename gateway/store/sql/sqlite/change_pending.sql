UPDATE pendings SET body = :body
 WHERE id = :id AND state = 'open' AND (expires_at IS NULL OR expires_at > :at)
   AND generation = (SELECT generation FROM sessions WHERE sessions.id = pendings.session_id)
