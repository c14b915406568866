UPDATE turns SET events = events || ? WHERE id = ?
