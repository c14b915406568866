SELECT state FROM pendings WHERE id = ?
