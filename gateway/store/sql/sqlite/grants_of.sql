SELECT id, kind, tool, args, agent, session_id, granted_by, granted_at, expires_at
  FROM grants
 WHERE agent = ? AND revoked_at IS NULL AND (kind = 'always' OR session_id = ?)
   AND (expires_at IS NULL OR expires_at > ?)
