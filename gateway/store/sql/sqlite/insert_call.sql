INSERT INTO tool_calls (session_id, call_id, seq, tool, args, args_hash, state, repeatable, result)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
