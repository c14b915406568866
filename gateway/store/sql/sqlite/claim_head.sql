SELECT id, channel, workspace, conversation, thread, agent, tenant, status, epoch, runner, lease_until,
       cancel, turn_id, turns, log_length, parent, root, root_call, depth, only_tools, model
  FROM sessions WHERE id = ?
