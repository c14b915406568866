-- Several calls of one step share a card: the id of the first of them.
ALTER TABLE pendings ADD COLUMN card TEXT NOT NULL DEFAULT '';
UPDATE pendings SET card = id;
CREATE INDEX pendings_of_card ON pendings (card);
