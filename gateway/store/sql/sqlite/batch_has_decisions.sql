UPDATE sessions SET status = 'ready', updated_at = ? WHERE id = ? AND status = 'pending'
