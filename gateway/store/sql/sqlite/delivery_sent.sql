UPDATE deliveries
   SET state = 'sent', runner = '', ended_at = ?,
       refs = CASE WHEN ? IS NULL THEN refs ELSE json_insert(refs, '$[#]', ?) END
 WHERE id = ?
RETURNING channel, workspace, conversation, thread, ref, kind, pending_id, refs, payload
