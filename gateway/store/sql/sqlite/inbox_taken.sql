UPDATE inbox SET state = 'done', body = NULL,
       turn = (SELECT turns + ? FROM sessions WHERE id = inbox.session_id)
 WHERE channel = ? AND workspace = ? AND conversation = ? AND message_id = ? AND kind = 'message'
   AND state = 'queued'
