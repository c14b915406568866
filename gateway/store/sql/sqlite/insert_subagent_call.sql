INSERT INTO inbox (channel, workspace, conversation, message_id, kind, state, session_id, turn, received_at)
VALUES ('subagent', ?, ?, ?, 'message', 'done', ?, ?, ?)
