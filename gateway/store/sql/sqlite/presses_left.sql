SELECT channel, workspace, conversation, message_id, body, received_at
  FROM inbox WHERE kind = 'press' AND state = 'queued' ORDER BY id
