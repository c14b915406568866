SELECT id, agent, tenant, status, generation, epoch, turns, log_length FROM sessions WHERE id = ?
