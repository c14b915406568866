UPDATE timers SET due_at = ? WHERE id = ? AND done = 0
