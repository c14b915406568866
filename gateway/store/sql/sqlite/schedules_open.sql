SELECT t.id, t.subject, t.name, t.session_id, t.due_at, t.done, t.body,
       s.channel, s.workspace, s.conversation, s.thread, s.agent
  FROM timers AS t INDEXED BY schedules_open LEFT JOIN sessions AS s ON s.id = t.session_id
 WHERE t.kind = 'schedule' AND t.done = 0
 ORDER BY t.id LIMIT ?
