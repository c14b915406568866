SELECT o.key FROM checkpoints AS c, json_each(c.body, '$.outstanding') AS o WHERE c.session_id = ?
