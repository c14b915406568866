INSERT INTO messages (session_id, seq, body, created_at) VALUES (?, ?, ?, ?)
