SELECT g.id, g.kind, g.tool, g.args, g.agent, g.session_id, g.granted_by, g.granted_at, g.expires_at,
       p.code, p.body, p.decided_by, p.id, s.channel, s.workspace, s.conversation, s.thread
  FROM grants AS g
  JOIN pendings AS p ON p.id = g.pending_id
  JOIN sessions AS s ON s.id = p.session_id
 WHERE g.revoked_at IS NULL
   AND ((g.agent = :agent AND g.kind = 'always') OR (g.session_id = :session AND :session <> ''
            AND :agent = (SELECT agent FROM sessions WHERE id = :session)))
   AND g.kind <> 'talk' AND (g.expires_at IS NULL OR g.expires_at > :now)
 ORDER BY g.granted_at DESC, g.id
 LIMIT :limit
