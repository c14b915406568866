DELETE FROM deliveries
 WHERE pending_id <> '' AND pending_id = ? AND kind = 'redraw' AND ref = ? AND state = 'queued'
   AND channel = ? AND workspace = ? AND conversation = ? AND thread = ?
