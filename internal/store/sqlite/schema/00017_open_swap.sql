-- What a group runs is changed by one change at a time.

-- +goose Up
ALTER TABLE change ADD COLUMN swaps TEXT GENERATED ALWAYS AS (CASE request ->> '$.kind' WHEN 'swap' THEN request ->> '$.group' END) VIRTUAL; -- the group; NULL = it is no swap
CREATE INDEX change_swaps ON change (swaps, seq) WHERE swaps IS NOT NULL;
UPDATE change SET cancel = 1 WHERE state NOT IN ('finalized', 'rolled_back', 'rejected', 'cancelled', 'failed') AND EXISTS (
	SELECT 1 FROM change AS newer WHERE newer.swaps = change.swaps AND newer.seq > change.seq
	AND newer.state NOT IN ('finalized', 'rolled_back', 'rejected', 'cancelled', 'failed'));
-- One that somebody has withdrawn makes room for the next while its step still ends.
CREATE UNIQUE INDEX change_open_swap ON change (swaps)
	WHERE swaps IS NOT NULL AND cancel = 0 AND state NOT IN ('finalized', 'rolled_back', 'rejected', 'cancelled', 'failed');
