UPDATE deliveries SET state = 'failed', runner = '', error = ?, ended_at = ? WHERE id = ?
RETURNING channel, workspace, conversation, thread, ref
