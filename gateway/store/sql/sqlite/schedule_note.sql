UPDATE timers SET body = ? WHERE id = ?
