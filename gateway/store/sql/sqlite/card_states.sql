SELECT DISTINCT state FROM pendings WHERE card = ?
