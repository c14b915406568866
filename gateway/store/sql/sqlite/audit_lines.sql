SELECT seq, at, kind, actor, session_id, pending_id, args_hash, body, previous, hash
  FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT ?
