SELECT min(due_at) FROM timers WHERE done = 0
