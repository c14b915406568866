UPDATE timers SET done = 1 WHERE id = ? AND done = 0
