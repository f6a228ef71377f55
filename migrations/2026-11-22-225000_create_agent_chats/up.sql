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
