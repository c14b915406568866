SELECT subject, body FROM timers WHERE kind = 'pairing' AND done = 0 AND due_at > ?
