UPDATE tool_calls SET state = 'started', attempt = attempt + 1, started_at = ?
 WHERE session_id = ? AND call_id = ? AND state IN ('allowed', 'waiting', 'started')
