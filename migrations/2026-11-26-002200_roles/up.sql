-- The role of a user: no key and no session exceeds it (docs/adr/0047).
ALTER TABLE labdata.app_user
    ADD COLUMN role text NOT NULL DEFAULT 'member',
    ADD CONSTRAINT app_user_role_check CHECK (role IN ('viewer', 'member', 'admin'));

-- Users from before have the role of their widest key that still counts, or else of any: a key that ended may be the only
-- trace of an administrator. Keys of runs say nothing about their user.
WITH key AS (
    SELECT user_id, revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) AS counts,
        CASE WHEN 'admin' = ANY (scopes) THEN 3 WHEN 'write' = ANY (scopes) THEN 2 ELSE 1 END AS width
    FROM labdata.api_key WHERE execution_id IS NULL
), widest AS (
    SELECT user_id, coalesce(max(width) FILTER (WHERE counts), max(width)) AS width FROM key GROUP BY user_id
)
UPDATE labdata.app_user u
SET role = CASE w.width WHEN 3 THEN 'admin' WHEN 2 THEN 'member' ELSE 'viewer' END
FROM widest w WHERE w.user_id = u.id;
