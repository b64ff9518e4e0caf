-- The turn that a message was given in first: what its later tries ask for is known by it.

-- +goose Up
ALTER TABLE message_in ADD COLUMN first_turn INTEGER NOT NULL DEFAULT 0;
UPDATE message_in SET first_turn = turn;
