SELECT requester, message_id, spent FROM turns WHERE id = ?
