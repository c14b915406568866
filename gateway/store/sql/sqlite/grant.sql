SELECT g.id, g.kind, g.tool, g.args, g.agent, g.session_id, g.granted_by, g.granted_at, g.expires_at,
       p.code, p.body, p.decided_by, p.id, s.channel, s.workspace, s.conversation, s.thread
  FROM grants AS g
  JOIN pendings AS p ON p.id = g.pending_id
  JOIN sessions AS s ON s.id = p.session_id
 WHERE g.id = ? AND g.revoked_at IS NULL
