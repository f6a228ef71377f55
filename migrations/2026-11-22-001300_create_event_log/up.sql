-- The event log, which clients follow: each event is stored in the transaction of its cause and deleted after an hour
-- (docs/adr/0029). Readers take the events of transactions below `labdata.event_horizon`, in the order of transaction
-- and number, so that none becomes readable behind them.
--
-- It references nothing: events outlive deleted records, and a small data write pays for every check.
CREATE TABLE labdata.event_log (
    transaction_id bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    organization_id uuid NOT NULL,
    type text NOT NULL,
    at timestamptz NOT NULL,
    -- The only user who may see the event, if not all may.
    user_id uuid,
    file_id uuid,
    job_execution_id uuid,
    table_name text,
    model_id uuid,
    version_number bigint,
    notification_id uuid,
    CONSTRAINT event_log_pkey PRIMARY KEY (organization_id, transaction_id, number)
);

-- The sweeper deletes the oldest events.
CREATE INDEX event_log_at_idx ON labdata.event_log (at);

-- Number of the oldest transaction in progress that may record events of an organization: all events of lower ones are
-- visible, and no further ones follow. `p_others` are transactions that record none of them, as 32 bits each, looked up before.
-- STABLE: it is computed for the snapshot that the calling statement reads with.
CREATE FUNCTION labdata.event_horizon(p_others bigint[]) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce(min(running.id), pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
    FROM (SELECT xip::text::bigint AS id FROM pg_snapshot_xip(pg_current_snapshot()) AS xip) running
    WHERE running.id & 4294967295 <> ALL (p_others)
$$;
