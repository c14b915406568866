SELECT card FROM pendings WHERE id = ?
