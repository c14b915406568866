INSERT INTO checkpoints (session_id, turn_id, seq, body, created_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (session_id) DO UPDATE
   SET turn_id = excluded.turn_id, seq = excluded.seq, body = excluded.body, created_at = excluded.created_at
