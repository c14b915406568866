INSERT INTO sessions (id, channel, workspace, conversation, thread, agent, tenant, title, created_at, updated_at,
                      parent, root, root_call, depth, only_tools)
VALUES (?, ?, ?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?)
