SELECT number FROM turns WHERE session_id = :session AND message_id = :message
UNION ALL
SELECT t.number
  FROM sessions AS s
  JOIN inbox AS i ON i.channel = s.channel AND i.workspace = s.workspace AND i.conversation = s.conversation
                 AND i.message_id = :message AND i.kind = 'message'
  JOIN turns AS t ON t.session_id = s.id AND t.number = i.turn
 WHERE s.id = :session
 ORDER BY 1 LIMIT 1
