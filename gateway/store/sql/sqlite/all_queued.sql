SELECT channel, workspace, conversation, message_id, body
  FROM inbox WHERE session_id = ? AND state = 'queued' ORDER BY place
