SELECT channel, workspace, conversation, message_id, body, received_at
  FROM inbox WHERE session_id = '' AND kind = 'press' AND state = 'queued' ORDER BY place
