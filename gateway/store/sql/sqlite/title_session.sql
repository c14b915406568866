UPDATE sessions SET title = ? WHERE id = ? AND title = ''
