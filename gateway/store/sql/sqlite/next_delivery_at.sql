SELECT min(not_before) FROM deliveries
 WHERE state IN ('queued', 'sending') AND state = 'queued'
