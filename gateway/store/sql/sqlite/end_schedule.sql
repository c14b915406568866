UPDATE timers SET done = 1, body = :body WHERE id = :id AND done = 0
