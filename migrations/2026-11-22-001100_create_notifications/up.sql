-- A notification delivered to a user's inbox. Caps count rows.
CREATE TABLE labdata.notification (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    -- A second notification with the same key is dropped. Rows are never deleted.
    dedupe_key text COLLATE "C" NOT NULL,
    title text NOT NULL,
    body text NOT NULL,
    action_url text NOT NULL,
    data jsonb,
    sender_kind text NOT NULL,
    -- The sending key and its name at that time; no reference, as keys may be purged.
    sender_name text NOT NULL,
    api_key_id uuid,
    created_at timestamptz NOT NULL,
    read_at timestamptz,
    -- Numbers of the notification among those of its user and of its organization, in the order of delivery: whether a
    -- window of time has n of them shows in one row.
    -- A notice does not count against caps: it has no number.
    user_nth bigint,
    organization_nth bigint,
    CONSTRAINT notification_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT notification_user_id_fkey
        FOREIGN KEY (organization_id, user_id) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT notification_dedupe_key UNIQUE (user_id, dedupe_key),
    CONSTRAINT notification_sender_kind_check CHECK (sender_kind IN ('api_key', 'platform')),
    CONSTRAINT notification_nth_check CHECK ((user_nth IS NULL) = (organization_nth IS NULL)),
    CONSTRAINT notification_api_key_id_check CHECK ((sender_kind = 'api_key') = (api_key_id IS NOT NULL))
);

-- The inbox and a user's cap per hour; the unread part of the inbox; an organization's cap per day.
CREATE INDEX notification_list_idx ON labdata.notification (organization_id, user_id, created_at DESC, id DESC);
CREATE INDEX notification_unread_idx ON labdata.notification (organization_id, user_id, created_at DESC, id DESC)
    WHERE read_at IS NULL;
CREATE INDEX notification_day_idx ON labdata.notification (organization_id, created_at DESC);
CREATE UNIQUE INDEX notification_user_nth_idx ON labdata.notification (organization_id, user_id, user_nth);
CREATE UNIQUE INDEX notification_organization_nth_idx ON labdata.notification (organization_id, organization_nth);

-- A user's channels of notifications; the defaults without a row.
CREATE TABLE labdata.notification_preference (
    user_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    message_inbox boolean NOT NULL,
    message_email boolean NOT NULL,
    CONSTRAINT notification_preference_pkey PRIMARY KEY (organization_id, user_id),
    CONSTRAINT notification_preference_user_id_fkey
        FOREIGN KEY (organization_id, user_id) REFERENCES labdata.app_user (organization_id, id)
);

-- The outbox: e-mails of notifications, stored in the transaction of their notification.
CREATE TABLE labdata.notification_email (
    notification_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    -- Number of claims. Only the last claim may settle the row.
    tries bigint NOT NULL DEFAULT 0,
    -- Earliest time of the next claim: the end of a lease, or the next attempt after a failure.
    due_at timestamptz NOT NULL,
    last_error text,
    settled_at timestamptz,
    CONSTRAINT notification_email_pkey PRIMARY KEY (notification_id, organization_id),
    CONSTRAINT notification_email_notification_id_fkey
        FOREIGN KEY (organization_id, notification_id) REFERENCES labdata.notification (organization_id, id),
    CONSTRAINT notification_email_status_check CHECK (status IN ('pending', 'sent', 'dead')),
    CONSTRAINT notification_email_settled_at_check CHECK ((status = 'pending') = (settled_at IS NULL))
);

-- Due e-mails, for workers.
CREATE INDEX notification_email_due_at_idx ON labdata.notification_email (due_at) WHERE status = 'pending';

-- The outbox of notices: ended executions and trainings whose users have not been notified. A row is stored in the
-- transaction of the end, and deleted in the transaction that delivers the notice.
CREATE TABLE labdata.notice (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    organization_id uuid NOT NULL,
    job_execution_id uuid,
    model_version_id uuid,
    recorded_at timestamptz NOT NULL,
    CONSTRAINT notice_pkey PRIMARY KEY (id),
    CONSTRAINT notice_job_execution_id_fkey
        FOREIGN KEY (organization_id, job_execution_id) REFERENCES labdata.job_execution (organization_id, id)
        ON DELETE CASCADE,
    CONSTRAINT notice_model_version_id_fkey FOREIGN KEY (organization_id, model_version_id)
        REFERENCES labdata.ml_model_version (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT notice_subject_check CHECK (num_nonnulls(job_execution_id, model_version_id) = 1)
);

-- One notice per end.
CREATE UNIQUE INDEX notice_job_execution_id_key ON labdata.notice (organization_id, job_execution_id)
    WHERE job_execution_id IS NOT NULL;
CREATE UNIQUE INDEX notice_model_version_id_key ON labdata.notice (organization_id, model_version_id)
    WHERE model_version_id IS NOT NULL;
-- The order of delivery.
CREATE INDEX notice_take_idx ON labdata.notice (recorded_at, id);

-- Delivers a notification in one round trip (docs/adr/0006).
--
-- Senders lock their organization, so that none comes between the count and the insertion of another. Each statement of
-- a function sees everything committed before it began, so the count is not older than the lock.
--
-- A cap of n is reached if the n-th newest notification is in the window; its number finds that row. As the clocks of
-- servers differ, times and numbers may be in another order, so the window is counted row by row unless that row is
-- older than the window by a minute.
--
-- Notices do not count: they have no number. The contract's clauses on caps and on failure notices verify that it decides
-- as the domain does (`Caps::deliver`).
CREATE FUNCTION labdata.send_notification(
    p_organization uuid, p_user uuid, p_id uuid, p_dedupe_key text, p_title text, p_body text, p_action_url text,
    p_data jsonb, p_api_key uuid, p_platform text, p_now timestamptz, p_per_hour bigint, p_per_day bigint,
    OUT outcome text, OUT hour_at timestamptz, OUT day_at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    clocks CONSTANT interval := '1 minute';
    is_repeat boolean;
    inbox boolean;
    email boolean;
    of_user bigint;
    of_organization bigint;
    sender text := p_platform;
BEGIN
    PERFORM pg_advisory_xact_lock(labdata.lock_key('notifications ' || p_organization));
    SELECT EXISTS (SELECT FROM labdata.notification WHERE user_id = p_user AND dedupe_key = p_dedupe_key),
        (SELECT message_inbox FROM labdata.notification_preference
            WHERE organization_id = p_organization AND user_id = p_user),
        (SELECT message_email FROM labdata.notification_preference
            WHERE organization_id = p_organization AND user_id = p_user),
        (SELECT user_nth FROM labdata.notification
            WHERE organization_id = p_organization AND user_id = p_user AND user_nth IS NOT NULL
            ORDER BY user_nth DESC LIMIT 1),
        (SELECT organization_nth FROM labdata.notification
            WHERE organization_id = p_organization AND organization_nth IS NOT NULL
            ORDER BY organization_nth DESC LIMIT 1)
        INTO is_repeat, inbox, email, of_user, of_organization;
    IF is_repeat THEN
        outcome := 'deduplicated';
        RETURN;
    END IF;
    IF NOT inbox THEN
        outcome := 'muted';
        RETURN;
    END IF;
    of_user := coalesce(of_user, 0) + 1;
    of_organization := coalesce(of_organization, 0) + 1;
    IF of_user > p_per_hour THEN
        PERFORM FROM labdata.notification
            WHERE organization_id = p_organization AND user_id = p_user AND user_nth = of_user - p_per_hour
            AND created_at > p_now - interval '1 hour' - clocks;
        IF FOUND THEN
            hour_at := (SELECT created_at FROM labdata.notification
                WHERE organization_id = p_organization AND user_id = p_user AND created_at > p_now - interval '1 hour'
                AND user_nth IS NOT NULL
                ORDER BY created_at DESC OFFSET p_per_hour - 1 LIMIT 1);
        END IF;
    END IF;
    IF of_organization > p_per_day THEN
        PERFORM FROM labdata.notification
            WHERE organization_id = p_organization AND organization_nth = of_organization - p_per_day
            AND created_at > p_now - interval '1 day' - clocks;
        IF FOUND THEN
            day_at := (SELECT created_at FROM labdata.notification
                WHERE organization_id = p_organization AND created_at > p_now - interval '1 day'
                AND organization_nth IS NOT NULL
                ORDER BY created_at DESC OFFSET p_per_day - 1 LIMIT 1);
        END IF;
    END IF;
    IF hour_at IS NOT NULL OR day_at IS NOT NULL THEN
        outcome := 'capped';
        RETURN;
    END IF;
    IF p_api_key IS NOT NULL THEN
        SELECT name INTO sender FROM labdata.api_key WHERE id = p_api_key AND organization_id = p_organization;
        IF sender IS NULL THEN
            outcome := 'unknown_key';
            RETURN;
        END IF;
    END IF;
    INSERT INTO labdata.notification (id, organization_id, user_id, dedupe_key, title, body, action_url, data,
            sender_kind, sender_name, api_key_id, created_at, user_nth, organization_nth)
        VALUES (p_id, p_organization, p_user, p_dedupe_key, p_title, p_body, p_action_url, p_data,
            CASE WHEN p_api_key IS NULL THEN 'platform' ELSE 'api_key' END, sender, p_api_key, p_now,
            of_user, of_organization);
    IF email THEN
        INSERT INTO labdata.notification_email (notification_id, organization_id, due_at)
            VALUES (p_id, p_organization, p_now);
    END IF;
    outcome := 'delivered';
END $$;
