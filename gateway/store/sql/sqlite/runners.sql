SELECT DISTINCT runner FROM sessions WHERE status = 'running' AND runner <> ''
UNION SELECT DISTINCT runner FROM deliveries WHERE state = 'sending' AND runner <> ''
