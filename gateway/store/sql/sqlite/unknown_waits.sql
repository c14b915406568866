SELECT 1 FROM pendings
 WHERE root = ? AND state = 'open' AND json_extract(body, '$.question.about') = 'unknown'
 LIMIT 1
