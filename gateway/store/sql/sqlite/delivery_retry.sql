UPDATE deliveries SET state = 'queued', runner = '', not_before = ?, error = ?, doubtful = max(doubtful, ?)
 WHERE id = ?
