-- A card of the host's or of an agent's in a conversation, and what a person's words do to it.

-- +goose Up
ALTER TABLE message_out ADD COLUMN card TEXT NOT NULL DEFAULT '' CHECK (card IN ('', 'approval', 'trial', 'promote', 'question', 'diff')); -- '' = it is none
ALTER TABLE message_out ADD COLUMN change TEXT NOT NULL DEFAULT ''; -- that it is about; '' = none
ALTER TABLE message_out ADD COLUMN digits INTEGER NOT NULL DEFAULT 0 CHECK (digits = 0 OR digits BETWEEN 10 AND 99); -- its name in the chat; 0 = it asks nothing
ALTER TABLE message_out ADD COLUMN delivered_at INTEGER; -- of a card: a watcher was told it first; NULL: none yet
UPDATE message_out SET card = 'question', digits = 10 + seq % 90 WHERE question <> '';
CREATE INDEX message_out_card ON message_out (chat, seq) WHERE digits > 0;

ALTER TABLE message_in ADD COLUMN decides TEXT CHECK (json_valid(decides)); -- what these words do to a card; NULL: they are said to the agent
