UPDATE inbox SET session_id = ? WHERE session_id = ? AND state = 'queued'
