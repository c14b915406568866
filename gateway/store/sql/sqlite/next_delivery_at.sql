SELECT min(not_before) FROM deliveries WHERE state = 'queued'
