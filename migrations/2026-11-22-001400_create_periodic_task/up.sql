-- Periodic tasks that one server at a time runs. A server claims a pass by moving `due_at`.
CREATE TABLE labdata.periodic_task (
    name text NOT NULL,
    due_at timestamptz NOT NULL,
    succeeded_at timestamptz,
    failed_at timestamptz,
    -- Error of the last pass, if it failed.
    error text,
    CONSTRAINT periodic_task_pkey PRIMARY KEY (name)
);
