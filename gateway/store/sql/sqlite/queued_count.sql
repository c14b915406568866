SELECT count(*) FROM inbox WHERE session_id = ? AND state = 'queued'
