UPDATE inbox SET state = 'done', body = NULL WHERE id = ?
