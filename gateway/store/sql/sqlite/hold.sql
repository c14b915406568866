UPDATE sessions SET log_length = log_length + ?, updated_at = ?
 WHERE id = ? AND runner = ? AND epoch = ? AND status = 'running'
RETURNING log_length - ?
