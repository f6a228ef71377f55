DROP FUNCTION labdata.send_notification;
DROP INDEX labdata.notification_organization_nth_idx;
DROP INDEX labdata.notification_user_nth_idx;
ALTER TABLE labdata.notification DROP COLUMN organization_nth, DROP COLUMN user_nth;

-- Delivers a notification, in one round trip. See docs/adr on notifications for why it is a function.
--
-- Counting and storing must not be divided by another sender, so senders lock: their organization, then their user,
-- always in that order. Locks are shared while so many places are free that all senders whom the server admits at once
-- could take one each without filling the window; so senders commit side by side. Nearer to a cap, or when told so,
-- they lock alone. A sender that has locked shared and finds itself near answers `crowded` and is to come again, alone.
-- Every statement of a function sees what was committed before it began, so what is counted is not older than the lock.
CREATE FUNCTION labdata.send_notification(
    p_organization uuid, p_user uuid, p_id uuid, p_dedupe_key text, p_title text, p_body text, p_action_url text,
    p_data jsonb, p_api_key uuid, p_platform text, p_now timestamptz, p_per_hour bigint, p_per_day bigint, p_alone boolean,
    OUT outcome text, OUT hour_at timestamptz, OUT day_at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    -- 'noti' in ASCII, and the next number: no other locks of the platform have two keys.
    organizations CONSTANT integer := 1852798057;
    users CONSTANT integer := 1852798058;
    senders CONSTANT bigint := current_setting('max_connections')::bigint;
    alone_in_organization CONSTANT boolean := p_alone OR p_per_day <= senders;
    alone_for_user CONSTANT boolean := p_alone OR p_per_hour <= senders;
    is_repeat boolean;
    inbox boolean;
    email boolean;
    sender text := p_platform;
BEGIN
    IF alone_in_organization THEN
        PERFORM pg_advisory_xact_lock(organizations, uuid_hash(p_organization));
    ELSE
        PERFORM pg_advisory_xact_lock_shared(organizations, uuid_hash(p_organization));
    END IF;
    IF alone_for_user THEN
        PERFORM pg_advisory_xact_lock(users, uuid_hash(p_user));
    ELSE
        PERFORM pg_advisory_xact_lock_shared(users, uuid_hash(p_user));
    END IF;
    SELECT EXISTS (SELECT FROM labdata.notification WHERE user_id = p_user AND dedupe_key = p_dedupe_key),
        (SELECT message_inbox FROM labdata.notification_preference
            WHERE organization_id = p_organization AND user_id = p_user),
        (SELECT message_email FROM labdata.notification_preference
            WHERE organization_id = p_organization AND user_id = p_user),
        (SELECT created_at FROM labdata.notification
            WHERE organization_id = p_organization AND user_id = p_user AND created_at > p_now - interval '1 hour'
            ORDER BY created_at DESC
            OFFSET p_per_hour - 1 - CASE WHEN alone_for_user THEN 0 ELSE senders END LIMIT 1),
        (SELECT created_at FROM labdata.notification
            WHERE organization_id = p_organization AND created_at > p_now - interval '1 day'
            ORDER BY created_at DESC
            OFFSET p_per_day - 1 - CASE WHEN alone_in_organization THEN 0 ELSE senders END LIMIT 1)
        INTO is_repeat, inbox, email, hour_at, day_at;
    IF is_repeat THEN
        outcome := 'deduplicated';
        RETURN;
    END IF;
    IF NOT inbox THEN
        outcome := 'muted';
        RETURN;
    END IF;
    IF hour_at IS NOT NULL AND NOT alone_for_user OR day_at IS NOT NULL AND NOT alone_in_organization THEN
        outcome := 'crowded';
        RETURN;
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
            sender_kind, sender_name, api_key_id, created_at)
        VALUES (p_id, p_organization, p_user, p_dedupe_key, p_title, p_body, p_action_url, p_data,
            CASE WHEN p_api_key IS NULL THEN 'platform' ELSE 'api_key' END, sender, p_api_key, p_now)
        ON CONFLICT ON CONSTRAINT notification_dedupe_key DO NOTHING;
    IF NOT FOUND THEN
        outcome := 'deduplicated';
        RETURN;
    END IF;
    IF email THEN
        INSERT INTO labdata.notification_email (notification_id, organization_id, due_at)
            VALUES (p_id, p_organization, p_now);
    END IF;
    outcome := 'delivered';
END $$;
