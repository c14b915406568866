UPDATE deliveries SET workspace = ?, conversation = ?
 WHERE channel = ? AND workspace = ? AND conversation = ? AND state IN ('queued', 'sending')
