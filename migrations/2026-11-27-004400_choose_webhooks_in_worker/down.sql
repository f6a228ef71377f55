-- What waits becomes deliveries, as the version before stores events in another form.
INSERT INTO labdata.webhook_delivery (webhook_id, id, organization_id, event_type, subject, at, started_at, due_at)
SELECT webhook.id, labdata.delivery_id(event.number, webhook.id), event.organization_id, event.type,
    jsonb_strip_nulls(to_jsonb(event)
        - '{number,organization_id,type,at,user_id,file_instrument_id,job_ids}'::text[]), event.at, event.at, event.at
FROM labdata.webhook_outbox event JOIN labdata.webhook ON webhook.organization_id = event.organization_id
WHERE labdata.webhook_receives(webhook, event);

ALTER FUNCTION labdata.store_webhook_events() RENAME TO store_webhook_deliveries;
DROP FUNCTION labdata.webhook_receives(labdata.webhook, labdata.webhook_outbox);
DROP FUNCTION labdata.webhook_may_receive(labdata.webhook, text);
DROP FUNCTION labdata.delivery_id(bigint, uuid);
DROP TABLE labdata.webhook_outbox;

-- Events that webhooks receive, until a worker makes the deliveries: one row for each event, for any number of webhooks
-- (docs/adr/0048). It references nothing, as the event log does.
CREATE TABLE labdata.webhook_outbox (
    organization_id uuid NOT NULL,
    at timestamptz NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    event_type text NOT NULL,
    -- The event as a row of the event log.
    event jsonb NOT NULL,
    -- Webhooks that received it when it happened. Later changes of webhooks, files and executions do not matter.
    webhook_ids uuid[] NOT NULL,
    -- Workers take the events of an organization in their order.
    CONSTRAINT webhook_outbox_pkey PRIMARY KEY (organization_id, at, id)
);

-- Id of the delivery of an event to a webhook: lists have it before the delivery is made.
CREATE FUNCTION labdata.delivery_id(p_event uuid, p_webhook uuid) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN encode(substring(sha256(uuid_send(p_event) || uuid_send(p_webhook)) FOR 16), 'hex')::uuid;

-- Stores the events of a statement for the webhooks that receive them, in its transaction. It runs at the end of the
-- statement, when executions that a data write creates are visible.
CREATE OR REPLACE FUNCTION labdata.store_webhook_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Most platforms have none, and every data write comes by.
    IF NOT EXISTS (SELECT FROM labdata.webhook) THEN
        RETURN NULL;
    END IF;
    INSERT INTO labdata.webhook_outbox (organization_id, at, event_type, event, webhook_ids)
    SELECT recorded.organization_id, recorded.at, recorded.type, to_jsonb(recorded), receiver.webhook_ids
    FROM recorded CROSS JOIN LATERAL (
        SELECT array_agg(webhook.id) AS webhook_ids FROM labdata.webhook
        WHERE webhook.organization_id = recorded.organization_id AND webhook.disabled_by IS NULL
        AND (recorded.type = ANY (webhook.events) OR '*' = ANY (webhook.events))
        -- Of what one user may see, a webhook is told if its maker is that user.
        AND (recorded.user_id IS NULL OR recorded.user_id = webhook.created_by)
        AND (webhook.table_name IS NULL OR webhook.table_name = recorded.table_name)
        AND (webhook.instrument_id IS NULL OR webhook.instrument_id = recorded.instrument_id OR EXISTS (
            SELECT FROM labdata.file
            WHERE file.organization_id = recorded.organization_id AND file.id = recorded.file_id
            AND file.instrument_id = webhook.instrument_id))
        AND (webhook.job_id IS NULL OR EXISTS (
            SELECT FROM labdata.job_execution execution
            WHERE execution.organization_id = recorded.organization_id AND execution.job_id = webhook.job_id
            AND (execution.id = recorded.job_execution_id OR execution.id = (
                SELECT file.job_execution_id FROM labdata.file
                WHERE file.organization_id = recorded.organization_id AND file.id = recorded.file_id))))
    ) receiver
    WHERE receiver.webhook_ids IS NOT NULL;
    RETURN NULL;
END
$$;
