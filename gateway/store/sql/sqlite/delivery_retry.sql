UPDATE deliveries SET state = 'queued', runner = '', not_before = ?, error = ? WHERE id = ?
