UPDATE sessions SET model = ? WHERE id = ?
