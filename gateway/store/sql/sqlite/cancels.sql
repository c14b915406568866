SELECT id, cancel FROM sessions WHERE runner = ? AND status = 'running' AND cancel <> ''
