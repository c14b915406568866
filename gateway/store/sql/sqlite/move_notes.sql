UPDATE OR IGNORE notes SET workspace = ?, name = ?
 WHERE kind = 'thread' AND channel = ? AND workspace = ? AND name = ?
