SELECT id, channel, workspace, conversation, thread, agent, tenant, status, epoch, runner, lease_until,
       cancel, turn_id, turns, log_length
  FROM sessions WHERE id = ?
