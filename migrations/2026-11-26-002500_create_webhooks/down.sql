DROP TRIGGER event_log_is_told_to_webhooks ON labdata.event_log;
DROP FUNCTION labdata.store_webhook_deliveries();
DROP TABLE labdata.webhook_delivery;
DROP TABLE labdata.webhook;
