-- A schedule is a timer that is due again and again: subject is its id, body what it is about.
-- session_id: the session that it wakes; empty for one that wakes a thread. name: in the configuration.
ALTER TABLE timers ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
ALTER TABLE timers ADD COLUMN name TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX schedules ON timers (subject) WHERE kind = 'schedule';
CREATE UNIQUE INDEX schedules_by_name ON timers (name) WHERE name <> '';
CREATE INDEX schedules_of_session ON timers (session_id) WHERE session_id <> '' AND done = 0;
CREATE INDEX schedules_open ON timers (id) WHERE kind = 'schedule' AND done = 0;
