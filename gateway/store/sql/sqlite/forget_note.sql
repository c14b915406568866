DELETE FROM notes
 WHERE kind = ? AND channel = ? AND workspace = ? AND name = ? AND thread = ? AND tenant = ? AND key = ?
