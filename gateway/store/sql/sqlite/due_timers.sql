SELECT id, kind, subject, due_at, body FROM timers WHERE done = 0 AND due_at <= ? ORDER BY due_at LIMIT ?
