SELECT t.id, t.subject, t.name, t.session_id, t.due_at, t.done, t.body,
       s.channel, s.workspace, s.conversation, s.thread, s.agent
  FROM timers AS t LEFT JOIN sessions AS s ON s.id = t.session_id
 WHERE t.kind = 'schedule' AND t.subject = ?
