-- A card that asks how an agent is shown a folder of this machine.

-- +goose Up
ALTER TABLE message_out ADD COLUMN shows TEXT NOT NULL DEFAULT '' CHECK (shows IN ('', 'approval', 'trial', 'promote', 'mount', 'question', 'diff')); -- '' = it is none
UPDATE message_out SET shows = card;
ALTER TABLE message_out DROP COLUMN card;
ALTER TABLE message_out RENAME COLUMN shows TO card;
