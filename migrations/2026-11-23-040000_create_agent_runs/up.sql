-- Runs of the agent in progress, on all servers.
CREATE TABLE labdata.agent_run (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    -- Its server renews it. From then on the run does not count.
    lease_until timestamptz NOT NULL,
    cancel_requested boolean NOT NULL DEFAULT false,
    CONSTRAINT agent_run_user_fkey FOREIGN KEY (organization_id, user_id)
        REFERENCES labdata.app_user (organization_id, id)
);

CREATE INDEX agent_run_user_idx ON labdata.agent_run (organization_id, user_id);

-- Tokens that organizations use, by month.
CREATE TABLE labdata.agent_usage (
    organization_id uuid NOT NULL
        CONSTRAINT agent_usage_organization_fkey REFERENCES labdata.organization (id),
    -- Begin of the month, in UTC.
    month timestamptz NOT NULL,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    total_tokens bigint NOT NULL DEFAULT 0,
    CONSTRAINT agent_usage_pkey PRIMARY KEY (organization_id, month)
);

ALTER TABLE labdata.agent_chat
    ADD COLUMN input_tokens bigint,
    ADD COLUMN output_tokens bigint,
    ADD COLUMN total_tokens bigint;
