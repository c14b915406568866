UPDATE tool_calls SET state = 'done', result = ?, full_result = ?, ended_at = ?
 WHERE session_id = ? AND call_id = ? AND state IN ('allowed', 'waiting', 'started')
