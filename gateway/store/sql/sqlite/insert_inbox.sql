INSERT INTO inbox (channel, workspace, conversation, message_id, kind, state, session_id, body, received_at, place)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
