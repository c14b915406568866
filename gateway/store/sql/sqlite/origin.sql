SELECT o.channel, o.workspace, o.conversation, o.thread, t.requester, o.tenant, o.id
  FROM sessions AS s
  JOIN sessions AS o ON o.id = CASE WHEN s.root = '' THEN s.id ELSE s.root END
  JOIN turns AS t ON t.session_id = s.id
 WHERE s.id = ? AND t.number = ?
