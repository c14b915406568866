UPDATE sessions SET status = 'ready', updated_at = ?
 WHERE id = (SELECT parent FROM sessions WHERE id = ?) AND status = 'pending'
RETURNING id
