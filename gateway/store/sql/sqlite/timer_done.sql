UPDATE timers SET done = 1 WHERE id = ?
