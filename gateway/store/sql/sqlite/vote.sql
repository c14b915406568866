UPDATE pendings SET votes = :votes
 WHERE id = :id AND state = 'open' AND votes = :before
   AND (expires_at IS NULL OR expires_at > :at)
   AND generation = (SELECT generation FROM sessions WHERE sessions.id = pendings.session_id)
