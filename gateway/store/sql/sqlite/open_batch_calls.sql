SELECT call_id, tool, args, args_hash, state, repeatable, attempt, result
  FROM tool_calls WHERE session_id = ? AND call_id = ?
