-- A subagent's conversation is a session of its own. parent: the session whose call it works for, '' for
-- none; root: the outermost one, '' for those themselves; root_call: the call there, below which it works;
-- depth: levels below the root; only_tools: a list of lists of globs, each of which a tool's name must fit.
ALTER TABLE sessions ADD COLUMN parent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN root TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN root_call TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN only_tools TEXT NOT NULL DEFAULT '[]';
CREATE INDEX sessions_of_parent ON sessions (parent, status) WHERE parent <> '';
-- The outermost session: where a request is shown.
ALTER TABLE pendings ADD COLUMN root TEXT NOT NULL DEFAULT '';
UPDATE pendings SET root = session_id;
CREATE INDEX pendings_of_root ON pendings (root, state);
-- What "for this session" has allowed is found by the session, whatever agent's call it was.
CREATE INDEX grants_of_session ON grants (session_id) WHERE revoked_at IS NULL;
-- The message of a call to a subagent has an identity like any other: channel 'subagent', workspace the
-- outermost session, conversation the calling session, message id the call; session_id is the subagent's,
-- turn the number of the outermost session's turn. Counted by turn and by time.
CREATE INDEX inbox_of_subagents ON inbox (workspace, turn) WHERE channel = 'subagent';
CREATE INDEX inbox_of_subagents_by_time ON inbox (workspace, received_at) WHERE channel = 'subagent';
