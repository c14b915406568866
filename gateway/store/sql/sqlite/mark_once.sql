UPDATE deliveries SET once = ? WHERE id = ?
