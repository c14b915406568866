INSERT INTO pendings (id, session_id, turn_id, agent, call_id, attempt, code, kind, state, generation,
                      body, requester, requested_at, expires_at, card, root)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, ?,
        (SELECT CASE WHEN root = '' THEN id ELSE root END FROM sessions WHERE id = ?))
