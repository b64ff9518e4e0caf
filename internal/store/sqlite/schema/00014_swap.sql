-- What the agent of a swap has proposed, in its own words, and the checkpoint that it stands for.

-- +goose Up
ALTER TABLE change ADD COLUMN swap TEXT NOT NULL DEFAULT '';
