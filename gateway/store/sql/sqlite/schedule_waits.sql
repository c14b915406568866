SELECT 1 FROM inbox
 WHERE channel = ? AND workspace = ? AND conversation = ? AND message_id = ? AND kind = 'message'
   AND state = 'queued'
UNION ALL
SELECT 1 FROM deliveries WHERE id = ? AND state IN ('queued', 'sending')
