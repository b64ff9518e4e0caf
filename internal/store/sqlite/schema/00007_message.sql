-- What a person has the commit say in place of what the card shows, and whether it may land unsigned.

-- +goose Up
ALTER TABLE approval ADD COLUMN message TEXT NOT NULL DEFAULT '';
ALTER TABLE approval ADD COLUMN unsigned INTEGER NOT NULL DEFAULT 0 CHECK (unsigned IN (0, 1));
