INSERT INTO pendings (id, session_id, turn_id, agent, call_id, attempt, code, kind, state, generation,
                      body, requester, requested_at, expires_at, card)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, ?)
