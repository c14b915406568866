SELECT t.id, t.subject, t.name, t.session_id, t.due_at, t.done, t.body, NULL, NULL, NULL, NULL, NULL
  FROM timers AS t INDEXED BY schedules_by_name
 WHERE t.name <> '' ORDER BY t.name
