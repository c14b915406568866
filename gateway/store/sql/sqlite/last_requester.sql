SELECT u.requester
  FROM sessions AS s JOIN turns AS u ON u.session_id = s.id AND u.number = s.turns
 WHERE s.id = ?
