INSERT INTO deliveries (channel, workspace, conversation, thread, kind, state, pending_id, payload, refs,
                        not_before, created_at, ended_at)
VALUES (?, ?, ?, ?, 'card', 'sent', ?, '{}', json_array(?), ?, ?, ?)
