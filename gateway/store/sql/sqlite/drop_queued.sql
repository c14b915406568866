UPDATE inbox SET state = 'done', body = NULL WHERE session_id = ? AND state = 'queued'
