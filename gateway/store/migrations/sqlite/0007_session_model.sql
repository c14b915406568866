-- The configured model that somebody has chosen for this session with /model; '' for its agent's own.
ALTER TABLE sessions ADD COLUMN model TEXT NOT NULL DEFAULT '';
