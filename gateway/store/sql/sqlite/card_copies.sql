SELECT channel, workspace, conversation, thread, refs, state, attempts, doubtful, payload
  FROM deliveries
 WHERE pending_id <> '' AND pending_id = (SELECT card FROM pendings WHERE id = ?)
   AND kind = 'card' AND state <> 'failed'
