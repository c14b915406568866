UPDATE timers INDEXED BY schedules_by_name
   SET body = json_set(body, '$.key[1]', ?, '$.key[2]', ?)
 WHERE name <> '' AND json_extract(body, '$.key[0]') = ? AND json_extract(body, '$.key[1]') = ?
   AND json_extract(body, '$.key[2]') = ?
