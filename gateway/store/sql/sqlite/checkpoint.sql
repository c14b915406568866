SELECT body FROM checkpoints WHERE session_id = ?
