UPDATE sessions SET lease_until = 0
 WHERE status IN ('running', 'ready') AND status = 'running' AND runner = ?
