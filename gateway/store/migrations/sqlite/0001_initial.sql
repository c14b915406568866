-- The twelve tables. Times are Unix seconds. JSON is compact text.

-- A thread points at its current session.
CREATE TABLE threads (
  channel      TEXT NOT NULL,
  workspace    TEXT NOT NULL,
  conversation TEXT NOT NULL,
  thread       TEXT NOT NULL,
  session_id   TEXT NOT NULL,
  agent        TEXT NOT NULL,
  tenant       TEXT NOT NULL DEFAULT '',
  created_at   REAL NOT NULL,
  PRIMARY KEY (channel, workspace, conversation, thread)
) WITHOUT ROWID;

-- runner, epoch and lease_until are the lease; generation grows when pendings lose their meaning.
CREATE TABLE sessions (
  id           TEXT PRIMARY KEY,
  channel      TEXT NOT NULL,
  workspace    TEXT NOT NULL,
  conversation TEXT NOT NULL,
  thread       TEXT NOT NULL,
  agent        TEXT NOT NULL,
  tenant       TEXT NOT NULL DEFAULT '',
  status       TEXT NOT NULL DEFAULT 'idle'
               CHECK (status IN ('idle', 'running', 'pending', 'ready', 'closed')),
  generation   INTEGER NOT NULL DEFAULT 0,
  runner       TEXT NOT NULL DEFAULT '',
  epoch        INTEGER NOT NULL DEFAULT 0,
  lease_until  REAL NOT NULL DEFAULT 0,
  cancel       TEXT NOT NULL DEFAULT '',
  turn_id      TEXT NOT NULL DEFAULT '',
  turns        INTEGER NOT NULL DEFAULT 0,
  log_length   INTEGER NOT NULL DEFAULT 0,
  title        TEXT NOT NULL DEFAULT '',
  created_at   REAL NOT NULL,
  updated_at   REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_work ON sessions (status, lease_until) WHERE status IN ('running', 'ready');

CREATE TABLE messages (
  session_id TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  body       TEXT NOT NULL,
  created_at REAL NOT NULL,
  PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

-- One run of the loop. events: packed lines, see gateway/eventlog.py.
CREATE TABLE turns (
  session_id TEXT NOT NULL,
  number     INTEGER NOT NULL,
  trigger    TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('running', 'parked', 'done')),
  first_seq  INTEGER NOT NULL,
  requester  TEXT NOT NULL,
  message_id TEXT NOT NULL,
  outcome    TEXT NOT NULL DEFAULT '',
  detail     TEXT NOT NULL DEFAULT '',
  answer     TEXT NOT NULL DEFAULT '',
  spent      TEXT NOT NULL DEFAULT '{}',
  usage      TEXT NOT NULL DEFAULT '{}',
  events     TEXT NOT NULL DEFAULT '',
  started_at REAL NOT NULL,
  ended_at   REAL,
  PRIMARY KEY (session_id, number)
) WITHOUT ROWID;

-- The write-ahead journal of calls. result is kept here until the step's results are in the log;
-- full_result only where the log holds a capped one.
CREATE TABLE tool_calls (
  session_id  TEXT NOT NULL,
  call_id     TEXT NOT NULL,
  seq         INTEGER NOT NULL,
  tool        TEXT NOT NULL,
  args        TEXT NOT NULL,
  args_hash   TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('allowed', 'refused', 'waiting', 'started', 'done')),
  repeatable  INTEGER NOT NULL,
  attempt     INTEGER NOT NULL DEFAULT 0,
  result      TEXT,
  full_result TEXT,
  started_at  REAL,
  ended_at    REAL,
  PRIMARY KEY (session_id, call_id)
) WITHOUT ROWID;

-- At most one stopped batch per session.
CREATE TABLE checkpoints (
  session_id TEXT PRIMARY KEY,
  turn_id    TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  body       TEXT NOT NULL,
  created_at REAL NOT NULL
) WITHOUT ROWID;

-- current: the batch that this belongs to has not been answered yet.
CREATE TABLE pendings (
  id           TEXT PRIMARY KEY,
  session_id   TEXT NOT NULL,
  turn_id      TEXT NOT NULL,
  agent        TEXT NOT NULL,
  call_id      TEXT NOT NULL,
  attempt      INTEGER NOT NULL DEFAULT 0,
  code         TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('approval', 'question')),
  state        TEXT NOT NULL
               CHECK (state IN ('open', 'approved', 'denied', 'answered', 'expired', 'superseded')),
  generation   INTEGER NOT NULL,
  current      INTEGER NOT NULL DEFAULT 1,
  body         TEXT NOT NULL,
  requester    TEXT NOT NULL,
  requested_at REAL NOT NULL,
  expires_at   REAL,
  votes        TEXT NOT NULL DEFAULT '[]',
  decision     TEXT,
  decided_by   TEXT NOT NULL DEFAULT '',
  actor        TEXT NOT NULL DEFAULT '',
  decided_at   REAL
) WITHOUT ROWID;
CREATE INDEX pendings_open ON pendings (requested_at) WHERE state = 'open';
CREATE INDEX pendings_of_session ON pendings (session_id);
CREATE INDEX pendings_code ON pendings (code);

CREATE TABLE grants (
  id         TEXT PRIMARY KEY,
  kind       TEXT NOT NULL CHECK (kind IN ('session', 'always', 'talk')),
  agent      TEXT NOT NULL,
  session_id TEXT NOT NULL,
  tool       TEXT NOT NULL,
  args       TEXT NOT NULL,
  pending_id TEXT NOT NULL,
  granted_by TEXT NOT NULL,
  granted_at REAL NOT NULL,
  expires_at REAL,
  revoked_at REAL
) WITHOUT ROWID;
CREATE INDEX grants_live ON grants (agent) WHERE revoked_at IS NULL;

-- Identity for ever; body and place in the queue only until it has been carried out. turn: the
-- number of the turn that took a message without beginning with it.
CREATE TABLE inbox (
  channel      TEXT NOT NULL,
  workspace    TEXT NOT NULL,
  conversation TEXT NOT NULL,
  message_id   TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('message', 'press')),
  state        TEXT NOT NULL CHECK (state IN ('queued', 'done')),
  session_id   TEXT NOT NULL,
  place        INTEGER,
  turn         INTEGER,
  body         TEXT,
  received_at  REAL NOT NULL,
  PRIMARY KEY (channel, workspace, conversation, message_id, kind)
) WITHOUT ROWID;
CREATE INDEX inbox_queued ON inbox (session_id, place) WHERE state = 'queued';

CREATE TABLE deliveries (
  id           INTEGER PRIMARY KEY,
  channel      TEXT NOT NULL,
  workspace    TEXT NOT NULL,
  conversation TEXT NOT NULL,
  thread       TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('answer', 'notice', 'card', 'redraw')),
  state        TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'sent', 'failed')),
  session_id   TEXT NOT NULL DEFAULT '',
  pending_id   TEXT NOT NULL DEFAULT '',
  payload      TEXT NOT NULL,
  ref          TEXT NOT NULL DEFAULT '',
  refs         TEXT NOT NULL DEFAULT '[]',
  reply_to     TEXT NOT NULL DEFAULT '',
  runner       TEXT NOT NULL DEFAULT '',
  attempts     INTEGER NOT NULL DEFAULT 0,
  doubtful     INTEGER NOT NULL DEFAULT 0,
  settled      INTEGER NOT NULL DEFAULT 0,
  not_before   REAL NOT NULL,
  error        TEXT NOT NULL DEFAULT '',
  created_at   REAL NOT NULL,
  ended_at     REAL
);
CREATE INDEX deliveries_waiting ON deliveries (channel, workspace, conversation, thread, ref, id)
  WHERE state IN ('queued', 'sending');
CREATE INDEX notices_of_session ON deliveries (session_id) WHERE kind = 'notice';
-- Cards that are out and not yet redrawn for good: what a start has to look at.
CREATE INDEX cards_unsettled ON deliveries (pending_id)
  WHERE kind = 'card' AND state = 'sent' AND settled = 0;
CREATE INDEX deliveries_of_pending ON deliveries (pending_id) WHERE pending_id <> '';

CREATE TABLE timers (
  id         INTEGER PRIMARY KEY,
  kind       TEXT NOT NULL,
  subject    TEXT NOT NULL,
  due_at     REAL NOT NULL,
  body       TEXT NOT NULL DEFAULT '{}',
  done       INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX timers_due ON timers (due_at) WHERE done = 0;

-- Append-only; hash covers the line and the hash before it.
CREATE TABLE audit (
  seq        INTEGER PRIMARY KEY,
  at         REAL NOT NULL,
  kind       TEXT NOT NULL,
  actor      TEXT NOT NULL,
  session_id TEXT NOT NULL,
  pending_id TEXT NOT NULL,
  args_hash  TEXT NOT NULL,
  body       TEXT NOT NULL,
  previous   TEXT NOT NULL,
  hash       TEXT NOT NULL
);
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_never_shortened BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
