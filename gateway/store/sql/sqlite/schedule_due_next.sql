UPDATE timers SET due_at = :next, done = :done WHERE id = :id AND done = 0 AND due_at = :due
