-- How a change ended that had nothing to land.

-- +goose Up
ALTER TABLE change ADD COLUMN outcome TEXT NOT NULL DEFAULT '' CHECK (outcome IN ('', 'nothing_to_do', 'base_fails_checks'));
