UPDATE deliveries SET refs = json_insert(refs, '$[#]', ?), doubtful = 0 WHERE id = ?
