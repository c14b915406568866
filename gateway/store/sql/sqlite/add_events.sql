UPDATE turns SET events = events || ? WHERE session_id = ? AND number = ?
