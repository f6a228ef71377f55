-- When the user was disabled; the API keys of a disabled user are refused.
ALTER TABLE labdata.app_user ADD COLUMN disabled_at timestamptz;

CREATE INDEX app_user_list_idx ON labdata.app_user (organization_id, created_at DESC, id DESC);
