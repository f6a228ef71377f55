DROP TABLE labdata.failure_notice;

-- Notices get the numbers after the last ones.
UPDATE labdata.notification it SET user_nth = numbered.user_nth, organization_nth = numbered.organization_nth
FROM (
    SELECT n.organization_id, n.id,
        row_number() OVER (PARTITION BY n.organization_id, n.user_id ORDER BY n.created_at, n.id)
            + (SELECT coalesce(max(o.user_nth), 0) FROM labdata.notification o
                WHERE o.organization_id = n.organization_id AND o.user_id = n.user_id) AS user_nth,
        row_number() OVER (PARTITION BY n.organization_id ORDER BY n.created_at, n.id)
            + (SELECT coalesce(max(o.organization_nth), 0) FROM labdata.notification o
                WHERE o.organization_id = n.organization_id) AS organization_nth
    FROM labdata.notification n WHERE n.user_nth IS NULL
) numbered
WHERE it.organization_id = numbered.organization_id AND it.id = numbered.id;

ALTER TABLE labdata.notification
    DROP CONSTRAINT notification_nth_check,
    ALTER COLUMN user_nth SET NOT NULL,
    ALTER COLUMN organization_nth SET NOT NULL;

CREATE OR REPLACE FUNCTION labdata.send_notification(
    p_organization uuid, p_user uuid, p_id uuid, p_dedupe_key text, p_title text, p_body text, p_action_url text,
    p_data jsonb, p_api_key uuid, p_platform text, p_now timestamptz, p_per_hour bigint, p_per_day bigint,
    OUT outcome text, OUT hour_at timestamptz, OUT day_at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    -- 'noti' in ASCII; no other lock of the platform has two keys.
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
