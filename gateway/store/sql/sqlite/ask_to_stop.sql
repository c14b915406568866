UPDATE sessions
   SET generation = generation + 1, cancel = ?, updated_at = ?,
       status = CASE WHEN status = 'pending' THEN 'ready' ELSE status END
 WHERE id = ? AND status IN ('running', 'pending', 'ready')
RETURNING status
