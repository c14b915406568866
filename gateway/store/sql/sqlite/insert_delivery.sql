INSERT INTO deliveries (channel, workspace, conversation, thread, kind, state, session_id, pending_id,
                        payload, ref, reply_to, runner, attempts, not_before, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
