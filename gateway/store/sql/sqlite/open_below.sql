SELECT id FROM pendings WHERE root = ? AND state = 'open' AND current = 1
