UPDATE sessions SET lease_until = ? WHERE runner = ? AND status = 'running'
