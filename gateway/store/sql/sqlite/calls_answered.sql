UPDATE tool_calls SET result = NULL, state = CASE WHEN state = 'refused' THEN state ELSE 'done' END
 WHERE session_id = ? AND call_id = ?
