-- What waits becomes deliveries, as the version before knows nothing else.
INSERT INTO labdata.webhook_delivery (webhook_id, id, organization_id, event_type, subject, at, started_at, due_at)
SELECT webhook.id, labdata.delivery_id(event.id, webhook.id), event.organization_id, event.event_type,
    jsonb_strip_nulls(event.event - '{transaction_id,number,organization_id,type,at,user_id}'::text[]),
    event.at, event.at, event.at
FROM labdata.webhook_outbox event
JOIN labdata.webhook ON webhook.organization_id = event.organization_id AND webhook.id = ANY (event.webhook_ids)
WHERE webhook.disabled_by IS NULL;

CREATE OR REPLACE FUNCTION labdata.store_webhook_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
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

DROP FUNCTION labdata.delivery_id(uuid, uuid);
DROP TABLE labdata.webhook_outbox;
