UPDATE sessions SET lease_until = 0 WHERE id = ? AND runner = ? AND epoch = ? AND status = 'running'
