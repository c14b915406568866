INSERT INTO timers (kind, subject, session_id, name, due_at, body) VALUES ('schedule', ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
