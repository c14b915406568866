UPDATE sessions
   SET status = ?, runner = '', lease_until = 0, cancel = ?, log_length = log_length + ?, updated_at = ?
 WHERE id = ? AND runner = ? AND epoch = ? AND status = 'running'
RETURNING log_length - ?, generation, channel, workspace, conversation, thread, cancel
