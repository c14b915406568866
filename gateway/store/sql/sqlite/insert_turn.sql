INSERT INTO turns (session_id, number, trigger, state, first_seq, requester, message_id, spent, started_at)
VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?)
