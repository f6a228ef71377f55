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
