SELECT id, turn_id, runner, epoch FROM sessions WHERE runner = ? AND status = 'running'
