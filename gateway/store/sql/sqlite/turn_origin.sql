SELECT requester, message_id, spent FROM turns WHERE session_id = ? AND number = ?
