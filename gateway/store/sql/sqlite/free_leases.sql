UPDATE sessions SET lease_until = 0 WHERE status = 'running' AND runner = ?
