SELECT s.id, s.channel, s.workspace, s.conversation, s.thread, s.agent, s.status, s.turn_id, s.title,
       s.log_length, s.created_at, s.updated_at,
       (SELECT count(*) FROM inbox AS i WHERE i.session_id = s.id AND i.state = 'queued'),
       (SELECT count(*) FROM pendings AS p
         WHERE (p.root = s.id OR p.session_id = s.id) AND p.current = 1 AND p.state = 'open'),
       s.parent, s.root, s.model
  FROM sessions AS s
