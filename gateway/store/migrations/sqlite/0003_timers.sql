-- A request may have several timers, which end together with it.
CREATE INDEX timers_of_subject ON timers (subject) WHERE done = 0;
