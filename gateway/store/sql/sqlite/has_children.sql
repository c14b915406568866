SELECT root FROM sessions WHERE parent = ? AND parent <> '' LIMIT 1
