SELECT s.id, s.agent, s.tenant, s.status, s.generation, s.epoch, s.turns, s.log_length, s.model
  FROM threads AS t JOIN sessions AS s ON s.id = t.session_id
 WHERE t.channel = ? AND t.workspace = ? AND t.conversation = ? AND t.thread = ?
