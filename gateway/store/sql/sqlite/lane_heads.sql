SELECT min(id) FROM deliveries WHERE state IN ('queued', 'sending')
 GROUP BY channel, workspace, conversation, thread, ref
