UPDATE deliveries SET settled = 1
 WHERE pending_id <> '' AND pending_id = ? AND kind = 'card' AND json_extract(refs, '$[#-1]') = ?
