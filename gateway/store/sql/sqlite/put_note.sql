INSERT INTO notes (kind, channel, workspace, name, thread, tenant, key, text, place, written_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET text = excluded.text, place = excluded.place, written_at = excluded.written_at
