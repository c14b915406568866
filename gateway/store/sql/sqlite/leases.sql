SELECT id, turn_id, runner, epoch FROM sessions
 WHERE status IN ('running', 'ready') AND runner = ? AND status = 'running'
