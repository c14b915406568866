-- What an agent was told to remember about a person or in a thread. kind person: name is the id there;
-- kind thread: name is the conversation. place: the conversation in which it was written.
CREATE TABLE notes (
  kind       TEXT NOT NULL CHECK (kind IN ('person', 'thread')),
  channel    TEXT NOT NULL,
  workspace  TEXT NOT NULL,
  name       TEXT NOT NULL,
  thread     TEXT NOT NULL,
  tenant     TEXT NOT NULL,
  key        TEXT NOT NULL,
  text       TEXT NOT NULL,
  place      TEXT NOT NULL,
  written_at REAL NOT NULL,
  PRIMARY KEY (kind, channel, workspace, name, thread, tenant, key)
) WITHOUT ROWID;
-- The call that has posted a row: a call that runs again posts nothing twice.
ALTER TABLE deliveries ADD COLUMN once TEXT;
CREATE UNIQUE INDEX deliveries_once ON deliveries (once) WHERE once IS NOT NULL;
