SELECT number FROM turns WHERE session_id = ? AND trigger <> 'resume' ORDER BY number DESC LIMIT 1
