-- The computer beside an instrument, as its last heartbeat left it, with the period which that extended. A heartbeat
-- that says the same as the last one changes this row alone, in place.
CREATE TABLE labdata.device (
    organization_id uuid NOT NULL,
    instrument_id uuid NOT NULL,
    -- Status that it reported. Silence is judged when it is asked for.
    status text NOT NULL,
    first_seen timestamptz NOT NULL,
    last_seen timestamptz NOT NULL,
    app_version text,
    is_watching boolean,
    -- Time since which it has reported the status.
    since timestamptz NOT NULL,
    queued_files bigint,
    detail jsonb,
    -- Number of heartbeats: what a server saw of the device is outdated when it has changed.
    beats bigint NOT NULL,
    -- Status of the last event about it.
    announced_status text NOT NULL,
    -- True if admins were notified of the silence since the last heartbeat.
    outage_noticed boolean NOT NULL,
    CONSTRAINT device_pkey PRIMARY KEY (organization_id, instrument_id),
    CONSTRAINT device_instrument_id_fkey FOREIGN KEY (organization_id, instrument_id)
        REFERENCES labdata.instrument (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT device_status_check CHECK (status IN ('online', 'error')),
    CONSTRAINT device_announced_status_check CHECK (announced_status IN ('online', 'offline', 'error')),
    CONSTRAINT device_last_seen_check CHECK (first_seen <= last_seen)
) WITH (fillfactor = 50);

-- Ended periods: times in which a device reported the same without a gap.
CREATE TABLE labdata.device_period (
    organization_id uuid NOT NULL,
    instrument_id uuid NOT NULL,
    first_seen timestamptz NOT NULL,
    last_seen timestamptz NOT NULL,
    status text NOT NULL,
    app_version text,
    is_watching boolean,
    CONSTRAINT device_period_pkey PRIMARY KEY (organization_id, instrument_id, first_seen),
    CONSTRAINT device_period_instrument_id_fkey FOREIGN KEY (organization_id, instrument_id)
        REFERENCES labdata.instrument (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT device_period_status_check CHECK (status IN ('online', 'error')),
    CONSTRAINT device_period_last_seen_check CHECK (first_seen <= last_seen)
);

-- The sweeper deletes the oldest periods.
CREATE INDEX device_period_last_seen_idx ON labdata.device_period (last_seen);

-- The instrument that an event is about.
ALTER TABLE labdata.event_log ADD COLUMN instrument_id uuid;
