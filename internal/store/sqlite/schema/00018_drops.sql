-- What is dropped in a flood is counted, and has no row of its own.

-- +goose Up
ALTER TABLE intake ADD COLUMN times INTEGER NOT NULL DEFAULT 1 CHECK (times > 0); -- so many that were dropped for this reason
