INSERT INTO grants (id, kind, agent, session_id, tool, args, pending_id, granted_by, granted_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
