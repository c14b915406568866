SELECT t.session_id, t.number, t.trigger, t.state, t.outcome, t.detail, t.answer, s.agent, t.events,
       t.spent, t.usage, t.first_seq, t.started_at, t.ended_at
  FROM turns AS t JOIN sessions AS s ON s.id = t.session_id
