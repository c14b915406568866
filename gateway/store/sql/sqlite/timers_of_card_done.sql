UPDATE timers SET done = 1
 WHERE done = 0 AND due_at <= :at AND kind IN (:kind, 'remind')
   AND subject IN (SELECT id FROM pendings WHERE card = :card)
