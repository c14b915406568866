SELECT coalesce(min(place), 1) - 1 FROM inbox WHERE session_id = ? AND state = 'queued'
