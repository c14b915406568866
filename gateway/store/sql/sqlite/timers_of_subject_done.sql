UPDATE timers SET done = 1 WHERE subject = ? AND done = 0
