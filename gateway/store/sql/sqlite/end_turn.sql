UPDATE turns
   SET state = ?, outcome = ?, detail = ?, answer = ?, spent = ?, usage = ?, events = events || ?, ended_at = ?
 WHERE session_id = ? AND number = ?
