SELECT tool, args_hash, attempt FROM tool_calls WHERE session_id = ? AND call_id = ?
