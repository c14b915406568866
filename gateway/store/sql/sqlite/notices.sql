SELECT d.payload, d.created_at,
       (SELECT count(*) FROM messages AS m WHERE m.session_id = d.session_id AND m.created_at <= d.created_at),
       d.id
  FROM deliveries AS d WHERE d.session_id = ? AND d.kind = 'notice' ORDER BY d.id
