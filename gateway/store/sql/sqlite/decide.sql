UPDATE pendings
   SET state = :state, decision = :decision, decided_by = :by, actor = :actor, decided_at = :at, votes = :votes
 WHERE id = :id AND state = 'open'
   AND (:clock OR expires_at IS NULL OR expires_at > :at)
   AND (NOT :clock OR expires_at <= :at)
   AND generation = (SELECT generation FROM sessions WHERE sessions.id = pendings.session_id)
