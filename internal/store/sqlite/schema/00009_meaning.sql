-- What was read out of a sentence until now, or out of the kind of a problem, has a value of its own.

-- +goose Up
ALTER TABLE change ADD COLUMN blocked TEXT NOT NULL DEFAULT ''
	CHECK (blocked IN ('', 'interactive_mode_failure', 'credential_missing', 'budget_used_up'));
UPDATE change SET blocked = CASE problem
	WHEN 'unavailable' THEN 'credential_missing'
	WHEN 'agent_failed' THEN 'budget_used_up'
	ELSE 'interactive_mode_failure' END
WHERE state = 'blocked';

UPDATE session SET doc = json_set(doc, '$.interrupted', CASE doc ->> '$.reason'
	WHEN 'interrupted: the daemon ended while the agent worked' THEN 'host_stopped'
	WHEN 'its files could not be restored while it worked' THEN 'not_restored'
	WHEN 'resumed' THEN 'resumed'
	WHEN 'redone' THEN 'redone'
	ELSE 'not_run' END)
WHERE doc ->> '$.exit' IS NULL AND coalesce(doc ->> '$.reason', '') <> '';

ALTER TABLE trial ADD COLUMN timed_out INTEGER NOT NULL DEFAULT 0 CHECK (timed_out IN (0, 1));
UPDATE trial SET timed_out = 1
WHERE handshake_state = 'rolled_back' AND reason = 'deadman timeout' AND actor ->> '$.kind' = 'host';

DROP TRIGGER trial_is_decided_once;
-- +goose StatementBegin
CREATE TRIGGER trial_is_decided_once BEFORE UPDATE ON trial
WHEN OLD.handshake_state IN ('confirmed', 'rolled_back') AND (NEW.handshake_state, NEW.actor, NEW.at, NEW.reason, NEW.timed_out)
	IS NOT (OLD.handshake_state, OLD.actor, OLD.at, OLD.reason, OLD.timed_out)
BEGIN
	SELECT RAISE(ABORT, 'a trial is decided once');
END;
-- +goose StatementEnd
