UPDATE timers SET body = ?, due_at = ?, done = 0 WHERE id = ?
