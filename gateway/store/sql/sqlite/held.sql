SELECT 1 FROM sessions WHERE id = ? AND runner = ? AND epoch = ? AND status = 'running'
