SELECT 1 FROM deliveries
 WHERE channel = ? AND workspace = ? AND conversation = ? AND thread = ? AND ref = ?
   AND state IN ('queued', 'sending')
 LIMIT 1
