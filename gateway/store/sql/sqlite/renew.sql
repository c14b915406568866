UPDATE sessions SET lease_until = ?
 WHERE status IN ('running', 'ready') AND runner = ? AND status = 'running'
