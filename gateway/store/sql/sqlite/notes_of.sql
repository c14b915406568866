SELECT key, text, place, written_at FROM notes
 WHERE kind = ? AND channel = ? AND workspace = ? AND name = ? AND thread = ? AND tenant = ? ORDER BY key
