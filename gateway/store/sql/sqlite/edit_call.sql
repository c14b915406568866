UPDATE tool_calls SET args = ?, args_hash = ? WHERE session_id = ? AND call_id = ?
