SELECT coalesce(max(place), 0) + 1 FROM inbox WHERE session_id = ? AND state = 'queued'
