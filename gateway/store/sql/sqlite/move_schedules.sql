UPDATE timers SET session_id = :new WHERE session_id = :old AND session_id <> '' AND done = 0
