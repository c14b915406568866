SELECT id, agent, tenant, status, generation, epoch, turns, log_length, model FROM sessions WHERE id = ?
