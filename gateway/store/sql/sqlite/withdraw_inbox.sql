UPDATE inbox SET state = 'done', body = NULL
 WHERE channel = ? AND workspace = ? AND conversation = ? AND message_id = ? AND kind = 'message'
   AND state = 'queued'
