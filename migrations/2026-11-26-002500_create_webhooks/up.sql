-- Addresses that are told of an organization's events (docs/adr/0048). Secrets are not stored: they are derived.
CREATE TABLE labdata.webhook (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    url text NOT NULL,
    -- Types of events, or `*` for all.
    events text[] NOT NULL,
    format text NOT NULL,
    -- Filters. They reference nothing: a webhook does not keep an instrument or a job from being deleted.
    table_name text,
    instrument_id uuid,
    job_id uuid,
    -- Version of the secret that signs, and the time until which the version before signs too.
    secret_version bigint NOT NULL DEFAULT 1,
    previous_secret_until timestamptz,
    -- First failure since the last delivery.
    failing_since timestamptz,
    -- Why it is told of nothing; null while it is enabled.
    disabled_by text,
    -- When the platform disabled it, until its administrators are told.
    notice_due_at timestamptz,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT webhook_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT webhook_created_by_fkey
        FOREIGN KEY (organization_id, created_by) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT webhook_events_check CHECK (cardinality(events) >= 1),
    CONSTRAINT webhook_format_check CHECK (format IN ('standard', 'slack', 'teams')),
    CONSTRAINT webhook_secret_version_check CHECK (secret_version >= 1),
    CONSTRAINT webhook_disabled_by_check CHECK (disabled_by IN ('person', 'gone', 'failures')),
    CONSTRAINT webhook_failing_since_check CHECK (disabled_by IS NULL OR failing_since IS NULL)
);

CREATE INDEX webhook_list_idx ON labdata.webhook (organization_id, created_at DESC, id DESC);
CREATE INDEX webhook_created_by_idx ON labdata.webhook (organization_id, created_by);

-- What a webhook is told, once. It references nothing, as the event log does: a reference would lock the webhook's row
-- in every transaction that is told of. A webhook is deleted with its deliveries; what comes later is swept.
CREATE TABLE labdata.webhook_delivery (
    webhook_id uuid NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    organization_id uuid NOT NULL,
    event_type text NOT NULL,
    -- The records that the event refers to, by the names of the event log's columns.
    subject jsonb NOT NULL,
    at timestamptz NOT NULL,
    -- When it was made or sent again, and the number of attempts before that.
    started_at timestamptz NOT NULL,
    earlier_attempts bigint NOT NULL DEFAULT 0,
    attempts bigint NOT NULL DEFAULT 0,
    status text NOT NULL DEFAULT 'pending',
    -- From when on it may be claimed: the end of the lease while it is claimed.
    due_at timestamptz NOT NULL,
    -- When it ended.
    settled_at timestamptz,
    response_status bigint,
    error text,
    CONSTRAINT webhook_delivery_pkey PRIMARY KEY (webhook_id, id),
    CONSTRAINT webhook_delivery_status_check CHECK (status IN ('pending', 'delivered', 'failed')),
    CONSTRAINT webhook_delivery_settled_check CHECK ((status = 'pending') = (settled_at IS NULL)),
    CONSTRAINT webhook_delivery_attempts_check CHECK (earlier_attempts >= 0 AND attempts >= earlier_attempts)
);

-- The list of a webhook's deliveries, and the sweeper.
CREATE INDEX webhook_delivery_list_idx ON labdata.webhook_delivery (webhook_id, at DESC, id DESC);
-- Claims look at the due deliveries of each webhook.
CREATE INDEX webhook_delivery_due_idx ON labdata.webhook_delivery (webhook_id, due_at, id) WHERE status = 'pending';

-- Stores the deliveries of the events of a statement, in its transaction. It runs at the end of the statement, when
-- executions that a data write creates are visible. Whatever names the columns of the event log is stored as it is.
CREATE FUNCTION labdata.store_webhook_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Most platforms have none, and every data write comes by.
    IF NOT EXISTS (SELECT FROM labdata.webhook) THEN
        RETURN NULL;
    END IF;
    INSERT INTO labdata.webhook_delivery (webhook_id, organization_id, event_type, subject, at, started_at, due_at)
    SELECT webhook.id, event.organization_id, event.type, jsonb_strip_nulls(to_jsonb(event)
            - '{transaction_id,number,organization_id,type,at,user_id}'::text[]), event.at, event.at, event.at
    FROM recorded event
    JOIN labdata.webhook ON webhook.organization_id = event.organization_id
    LEFT JOIN labdata.file ON file.organization_id = event.organization_id AND file.id = event.file_id
        -- Only filters look at it.
        AND num_nonnulls(webhook.instrument_id, webhook.job_id) > 0
    WHERE webhook.disabled_by IS NULL
    AND (event.type = ANY (webhook.events) OR '*' = ANY (webhook.events))
    -- Of what one user may see, a webhook is told if its maker is that user.
    AND (event.user_id IS NULL OR event.user_id = webhook.created_by)
    AND (webhook.table_name IS NULL OR webhook.table_name = event.table_name)
    AND (webhook.instrument_id IS NULL OR webhook.instrument_id = file.instrument_id
        OR webhook.instrument_id::text = to_jsonb(event) ->> 'instrument_id')
    AND (webhook.job_id IS NULL OR EXISTS (
        SELECT FROM labdata.job_execution execution
        WHERE execution.organization_id = event.organization_id AND execution.job_id = webhook.job_id
        AND execution.id IN (event.job_execution_id, file.job_execution_id)));
    RETURN NULL;
END
$$;

CREATE TRIGGER event_log_is_told_to_webhooks AFTER INSERT ON labdata.event_log
    REFERENCING NEW TABLE AS recorded
    FOR EACH STATEMENT EXECUTE FUNCTION labdata.store_webhook_deliveries();
