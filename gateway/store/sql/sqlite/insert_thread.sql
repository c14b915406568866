INSERT INTO threads (channel, workspace, conversation, thread, session_id, agent, tenant, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (channel, workspace, conversation, thread) DO UPDATE
   SET session_id = excluded.session_id, agent = excluded.agent, tenant = excluded.tenant
