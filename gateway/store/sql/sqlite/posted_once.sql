SELECT 1 FROM deliveries WHERE once = ?
