SELECT workspace, conversation FROM inbox
 WHERE channel = ? AND (workspace, conversation) > (?, ?)
 ORDER BY workspace, conversation LIMIT 1
