SELECT 1 FROM pendings
 WHERE session_id = ? AND state = 'open' AND json_extract(body, '$.question.about') = 'unknown'
 LIMIT 1
