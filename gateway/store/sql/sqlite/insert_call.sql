INSERT INTO tool_calls (session_id, call_id, turn_id, seq, tool, args, args_hash, state, repeatable, result, attempt, started_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, NULL)
