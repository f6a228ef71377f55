-- Saved conversations of users with the agent.
CREATE TABLE labdata.agent_chat (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    title text NOT NULL,
    message_count bigint NOT NULL,
    size_bytes bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    input_tokens bigint,
    output_tokens bigint,
    total_tokens bigint,
    CONSTRAINT agent_chat_organization_id_id_key UNIQUE (organization_id, id),
    CONSTRAINT agent_chat_user_fkey FOREIGN KEY (organization_id, user_id)
        REFERENCES labdata.app_user (organization_id, id)
);

CREATE INDEX agent_chat_list_idx ON labdata.agent_chat (organization_id, user_id, created_at DESC, id DESC);

CREATE TABLE labdata.agent_message (
    organization_id uuid NOT NULL,
    chat_id uuid NOT NULL,
    -- Position in the chat, from 0.
    position bigint NOT NULL,
    role text NOT NULL CONSTRAINT agent_message_role_check CHECK (role IN ('user', 'assistant')),
    content text NOT NULL,
    -- Tool calls with their outputs, in order.
    tool_calls jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT agent_message_pkey PRIMARY KEY (organization_id, chat_id, position),
    CONSTRAINT agent_message_chat_fkey FOREIGN KEY (organization_id, chat_id)
        REFERENCES labdata.agent_chat (organization_id, id) ON DELETE CASCADE
);

-- Figures of chats. The object whose key is the id has the bytes.
CREATE TABLE labdata.agent_chat_file (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    chat_id uuid NOT NULL,
    name text NOT NULL,
    media_type text NOT NULL,
    size_bytes bigint NOT NULL CONSTRAINT agent_chat_file_size_bytes_check CHECK (size_bytes >= 0),
    created_at timestamptz NOT NULL,
    CONSTRAINT agent_chat_file_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT agent_chat_file_chat_fkey FOREIGN KEY (organization_id, chat_id)
        REFERENCES labdata.agent_chat (organization_id, id) ON DELETE CASCADE
);

CREATE INDEX agent_chat_file_chat_idx ON labdata.agent_chat_file (organization_id, chat_id);

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

-- Executions under which assistants write: one per API key, until the key pauses.
CREATE TABLE labdata.agent_write_session (
    organization_id uuid NOT NULL,
    api_key_id uuid NOT NULL,
    execution_id uuid NOT NULL,
    last_used_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, api_key_id),
    CONSTRAINT agent_write_session_api_key_id_fkey
        FOREIGN KEY (organization_id, api_key_id)
        REFERENCES labdata.api_key (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT agent_write_session_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id)
        REFERENCES labdata.job_execution (organization_id, id) ON DELETE CASCADE
);

CREATE INDEX agent_write_session_execution_idx
    ON labdata.agent_write_session (organization_id, execution_id);

CREATE INDEX agent_write_session_last_used_idx ON labdata.agent_write_session (last_used_at);
