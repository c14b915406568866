INSERT INTO timers (kind, subject, due_at, body) VALUES (?, ?, ?, ?)
