UPDATE deliveries
   SET state = CASE WHEN doubtful = 1 AND kind IN ('answer', 'notice') THEN 'failed' ELSE 'queued' END,
       error = CASE WHEN doubtful = 1 THEN 'its sender died twice' ELSE error END,
       runner = '', doubtful = 1, not_before = 0
 WHERE state IN ('queued', 'sending') AND state = 'sending' AND runner = ?
