SELECT id FROM pendings WHERE card = (SELECT card FROM pendings WHERE id = ?) AND state = 'open'
