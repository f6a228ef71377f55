-- The end of each organization's audit log: the time and hash of its newest entry. Whoever appends an entry holds
-- an advisory lock until the end of the transaction, so that entries form one chain. Without an entry, both are null.
CREATE TABLE labdata.audit_chain (
    organization_id uuid NOT NULL,
    at timestamptz,
    hash bytea,
    CONSTRAINT audit_chain_pkey PRIMARY KEY (organization_id),
    CONSTRAINT audit_chain_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id)
);

-- The audit log (docs/adr/0041). It references no records: entries outlive what they name.
CREATE TABLE labdata.audit_entry (
    organization_id uuid NOT NULL,
    -- Later than that of the entry before: the order of the chain.
    at timestamptz NOT NULL,
    id uuid NOT NULL,
    action text NOT NULL,
    -- Who did it, with the names of that time.
    user_id uuid,
    user_email text,
    user_name text,
    api_key_id uuid,
    api_key_name text,
    target_kind text NOT NULL,
    target_id text,
    target_name text,
    details jsonb NOT NULL,
    previous_hash bytea,
    -- SHA-256 of the entry's canonical JSON.
    hash bytea NOT NULL,
    CONSTRAINT audit_entry_pkey PRIMARY KEY (organization_id, at),
    CONSTRAINT audit_entry_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT audit_entry_action_check CHECK (action IN (
        'session.started', 'session.refused', 'api_key.created', 'api_key.revoked', 'user.created', 'user.updated',
        'user.role_changed', 'invitation.created', 'invitation.revoked', 'group.created', 'group.updated',
        'group.deleted', 'table.defined', 'table.dropped', 'table.restored', 'table.purged', 'column.dropped',
        'column.restored', 'column.purged', 'table.exported', 'file.deleted', 'file.restored', 'file.purged',
        'execution.reverted', 'history.forgotten', 'row.restored', 'job.published', 'webhook.created',
        'webhook.updated', 'webhook.deleted', 'webhook.disabled', 'sql_login.created', 'sql_login.revoked',
        'backup.created'
    )),
    CONSTRAINT audit_entry_target_kind_check CHECK (target_kind IN (
        'api_key', 'column', 'job_execution', 'file', 'group', 'invitation', 'job', 'platform', 'row', 'sql_login',
        'table', 'user', 'webhook'
    )),
    CONSTRAINT audit_entry_hash_check CHECK (octet_length(hash) = 32 AND octet_length(previous_hash) = 32)
);

-- The filters of the list.
CREATE INDEX audit_entry_action_idx ON labdata.audit_entry (organization_id, action, at);
CREATE INDEX audit_entry_user_id_idx ON labdata.audit_entry (organization_id, user_id, at);

CREATE FUNCTION labdata.refuse_change_of_audit_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'entries of the audit log are neither changed nor deleted'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER audit_entry_is_only_added_to BEFORE UPDATE OR DELETE OR TRUNCATE ON labdata.audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION labdata.refuse_change_of_audit_entry();
