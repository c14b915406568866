SELECT p.id, p.session_id, p.turn_id, p.agent, p.attempt, p.state, p.current, p.body, p.requester,
       p.requested_at, p.votes, p.decision, p.decided_by, p.actor, p.decided_at,
       s.channel, s.workspace, s.conversation, s.thread, p.root, s.root_call, r.agent
  FROM pendings AS p
  JOIN sessions AS s ON s.id = p.session_id
  LEFT JOIN sessions AS r ON r.id = p.root
