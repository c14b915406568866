SELECT c.channel, c.workspace, c.conversation, c.thread, c.pending_id, r.value, c.payload
  FROM deliveries AS c INDEXED BY cards_unsettled, json_each(c.refs) AS r
 WHERE c.kind = 'card' AND c.state = 'sent' AND c.settled = 0 AND r.key = json_array_length(c.refs) - 1
   AND NOT EXISTS (SELECT 1 FROM pendings AS o WHERE o.card = c.pending_id AND o.state = 'open')
   AND NOT EXISTS (
     SELECT 1 FROM deliveries AS d
      WHERE d.pending_id <> '' AND d.pending_id = c.pending_id AND d.kind = 'redraw' AND d.ref = r.value
        AND (d.state IN ('queued', 'sending', 'failed')
             OR (d.state = 'sent' AND d.created_at >=
                 (SELECT max(p.decided_at) FROM pendings AS p WHERE p.card = c.pending_id))))
