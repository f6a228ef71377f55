-- What waits becomes deliveries, as the events are stored in another form from now on.
INSERT INTO labdata.webhook_delivery (webhook_id, id, organization_id, event_type, subject, at, started_at, due_at)
SELECT webhook.id, labdata.delivery_id(event.id, webhook.id), event.organization_id, event.event_type,
    jsonb_strip_nulls(event.event - '{transaction_id,number,organization_id,type,at,user_id}'::text[]),
    event.at, event.at, event.at
FROM labdata.webhook_outbox event
JOIN labdata.webhook ON webhook.organization_id = event.organization_id AND webhook.id = ANY (event.webhook_ids)
WHERE webhook.disabled_by IS NULL;

DROP TABLE labdata.webhook_outbox;
DROP FUNCTION labdata.delivery_id(uuid, uuid);

-- Events that may have a webhook, until a worker chooses the webhooks and makes their deliveries (docs/adr/0048): the
-- columns of the event log, and what filters look at. It references nothing, as the event log does.
CREATE TABLE labdata.webhook_outbox (
    organization_id uuid NOT NULL,
    at timestamptz NOT NULL,
    number bigint NOT NULL,
    type text NOT NULL,
    user_id uuid,
    file_id uuid,
    job_execution_id uuid,
    table_name text,
    model_id uuid,
    version_number bigint,
    notification_id uuid,
    instrument_id uuid,
    trash_number bigint,
    -- Instrument of the file, and jobs of the executions, when it happened; null while no webhook filters by them.
    file_instrument_id uuid,
    job_ids uuid[],
    -- Workers take the events of an organization in their order.
    CONSTRAINT webhook_outbox_pkey PRIMARY KEY (organization_id, at, number)
);

-- Id of the delivery of an event to a webhook: lists have it before the delivery is made.
CREATE FUNCTION labdata.delivery_id(p_event bigint, p_webhook uuid) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN encode(substring(sha256(int8send(p_event) || uuid_send(p_webhook)) FOR 16), 'hex')::uuid;

-- Whether an event may have a webhook. The outbox is small by it: most events have none.
CREATE FUNCTION labdata.webhook_may_receive(p_webhook labdata.webhook, p_type text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (p_webhook).disabled_by IS NULL AND (p_type = ANY ((p_webhook).events) OR '*' = ANY ((p_webhook).events));

-- Whether a webhook receives an event of its organization.
CREATE FUNCTION labdata.webhook_receives(p_webhook labdata.webhook, p_event labdata.webhook_outbox) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN labdata.webhook_may_receive(p_webhook, (p_event).type)
    -- Of what one user may see, a webhook is told if its maker is that user.
    AND ((p_event).user_id IS NULL OR (p_event).user_id = (p_webhook).created_by)
    AND ((p_webhook).table_name IS NULL OR (p_webhook).table_name = (p_event).table_name)
    AND ((p_webhook).instrument_id IS NULL
        OR (p_webhook).instrument_id IN ((p_event).instrument_id, (p_event).file_instrument_id))
    AND ((p_webhook).job_id IS NULL OR (p_webhook).job_id = ANY ((p_event).job_ids));

-- Stores the events of a statement that may have a webhook, in its transaction. It runs at the end of the statement,
-- when executions that a data write creates are visible.
CREATE OR REPLACE FUNCTION labdata.store_webhook_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Most platforms have none, and every data write comes by.
    IF NOT EXISTS (SELECT FROM labdata.webhook) THEN
        RETURN NULL;
    END IF;
    -- The events of a statement are of one type and organization, or few.
    IF NOT EXISTS (
        SELECT FROM recorded JOIN labdata.webhook ON webhook.organization_id = recorded.organization_id
        WHERE labdata.webhook_may_receive(webhook, recorded.type)) THEN
        RETURN NULL;
    END IF;
    IF NOT EXISTS (SELECT FROM labdata.webhook WHERE num_nonnulls(instrument_id, job_id) > 0) THEN
        INSERT INTO labdata.webhook_outbox (organization_id, at, number, type, user_id, file_id, job_execution_id,
            table_name, model_id, version_number, notification_id, instrument_id, trash_number)
        SELECT organization_id, at, number, type, user_id, file_id, job_execution_id,
            table_name, model_id, version_number, notification_id, instrument_id, trash_number
        FROM recorded;
        RETURN NULL;
    END IF;
    -- Later, files may be of another instrument, or purged.
    INSERT INTO labdata.webhook_outbox (organization_id, at, number, type, user_id, file_id, job_execution_id,
        table_name, model_id, version_number, notification_id, instrument_id, trash_number, file_instrument_id, job_ids)
    SELECT recorded.organization_id, recorded.at, recorded.number, recorded.type, recorded.user_id, recorded.file_id,
        recorded.job_execution_id, recorded.table_name, recorded.model_id, recorded.version_number,
        recorded.notification_id, recorded.instrument_id, recorded.trash_number, file.instrument_id, ARRAY(
            SELECT execution.job_id FROM labdata.job_execution execution
            WHERE execution.organization_id = recorded.organization_id
            AND execution.id IN (recorded.job_execution_id, file.job_execution_id))
    FROM recorded LEFT JOIN labdata.file
        ON file.organization_id = recorded.organization_id AND file.id = recorded.file_id;
    RETURN NULL;
END
$$;

ALTER FUNCTION labdata.store_webhook_deliveries() RENAME TO store_webhook_events;
