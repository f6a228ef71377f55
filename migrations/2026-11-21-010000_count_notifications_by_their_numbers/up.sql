-- The number of each notification among those of its user and of its organization, in the order of their delivery.
-- Whether a window of time holds n of them is then a look at one row, not at all that the window holds.
ALTER TABLE labdata.notification ADD COLUMN user_nth bigint, ADD COLUMN organization_nth bigint;
UPDATE labdata.notification AS it SET user_nth = numbered.user_nth, organization_nth = numbered.organization_nth
FROM (
    SELECT organization_id, id,
        row_number() OVER (PARTITION BY organization_id, user_id ORDER BY created_at, id) AS user_nth,
        row_number() OVER (PARTITION BY organization_id ORDER BY created_at, id) AS organization_nth
    FROM labdata.notification
) AS numbered
WHERE numbered.organization_id = it.organization_id AND numbered.id = it.id;
ALTER TABLE labdata.notification ALTER COLUMN user_nth SET NOT NULL, ALTER COLUMN organization_nth SET NOT NULL;
CREATE UNIQUE INDEX notification_user_nth_idx ON labdata.notification (organization_id, user_id, user_nth);
CREATE UNIQUE INDEX notification_organization_nth_idx ON labdata.notification (organization_id, organization_nth);

DROP FUNCTION labdata.send_notification;

-- Delivers a notification, in one round trip. See docs/adr on notifications for why it is a function.
--
-- Counting and storing must not be divided by another sender, so the senders of an organization lock it. Every
-- statement of a function sees what was committed before it began, so what is counted is not older than the lock.
--
-- A cap of n is reached where the n-th newest notification lies in the window. By their numbers that is one row. Times
-- and numbers may differ in order by what the clocks of several servers differ, so a window is counted row by row
-- unless that row is older than the window by a minute.
CREATE FUNCTION labdata.send_notification(
    p_organization uuid, p_user uuid, p_id uuid, p_dedupe_key text, p_title text, p_body text, p_action_url text,
    p_data jsonb, p_api_key uuid, p_platform text, p_now timestamptz, p_per_hour bigint, p_per_day bigint,
    OUT outcome text, OUT hour_at timestamptz, OUT day_at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    -- 'noti' in ASCII: no other locks of the platform have two keys.
    organizations CONSTANT integer := 1852798057;
    clocks CONSTANT interval := '1 minute';
    is_repeat boolean;
    inbox boolean;
    email boolean;
    of_user bigint;
    of_organization bigint;
    sender text := p_platform;
BEGIN
    PERFORM pg_advisory_xact_lock(organizations, uuid_hash(p_organization));
    SELECT EXISTS (SELECT FROM labdata.notification WHERE user_id = p_user AND dedupe_key = p_dedupe_key),
        (SELECT message_inbox FROM labdata.notification_preference
            WHERE organization_id = p_organization AND user_id = p_user),
        (SELECT message_email FROM labdata.notification_preference
            WHERE organization_id = p_organization AND user_id = p_user),
        (SELECT user_nth FROM labdata.notification
            WHERE organization_id = p_organization AND user_id = p_user ORDER BY user_nth DESC LIMIT 1),
        (SELECT organization_nth FROM labdata.notification
            WHERE organization_id = p_organization ORDER BY organization_nth DESC LIMIT 1)
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
