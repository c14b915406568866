UPDATE pendings
   SET state = 'superseded', decision = ?, decided_by = ?, actor = ?, decided_at = ?
 WHERE id = ? AND state = 'open'
RETURNING id
