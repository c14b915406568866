SELECT channel, workspace, conversation, thread, refs, state, attempts, doubtful,
       json_extract(payload, '$.revealed')
  FROM deliveries
 WHERE pending_id <> '' AND pending_id = (SELECT card FROM pendings WHERE id = ?)
   AND kind = 'card' AND state <> 'failed'
