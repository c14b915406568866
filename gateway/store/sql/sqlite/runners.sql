SELECT DISTINCT runner FROM sessions
 WHERE status IN ('running', 'ready') AND status = 'running' AND runner <> ''
UNION SELECT DISTINCT runner FROM deliveries
 WHERE state IN ('queued', 'sending') AND state = 'sending' AND runner <> ''
