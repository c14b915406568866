SELECT id FROM sessions WHERE parent = ? AND parent <> '' AND status IN ('running', 'ready', 'pending')
