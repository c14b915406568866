UPDATE sessions
   SET status = 'running', runner = ?, epoch = epoch + 1, lease_until = ?, turn_id = ?,
       turns = turns + ?, log_length = log_length + ?, updated_at = ?,
       title = CASE WHEN title = '' THEN ? ELSE title END
 WHERE id = ?
