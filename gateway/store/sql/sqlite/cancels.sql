SELECT id, cancel FROM sessions
 WHERE status IN ('running', 'ready') AND runner = ? AND status = 'running' AND cancel <> ''
