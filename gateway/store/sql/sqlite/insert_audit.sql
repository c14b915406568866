INSERT INTO audit (seq, at, kind, actor, session_id, pending_id, args_hash, body, previous, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
