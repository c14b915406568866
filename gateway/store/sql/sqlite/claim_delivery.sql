UPDATE deliveries SET state = 'sending', runner = ?, attempts = attempts + 1
 WHERE id = ? AND state = 'queued' AND not_before <= ?
RETURNING id, channel, workspace, conversation, thread, kind, payload, session_id, pending_id, ref, refs,
          attempts, doubtful, reply_to
