-- For references that hold within an organization.
ALTER TABLE labdata.trash ADD CONSTRAINT trash_organization_id_key UNIQUE (organization_id, id);

-- Annotations of images in the trash. Their masks stay, and count for the quota.
CREATE TABLE labdata.trashed_annotation (
    organization_id uuid NOT NULL,
    trash_id uuid NOT NULL,
    object_key uuid NOT NULL,
    -- The execution under which it was saved, whose revert deletes it here too.
    job_execution_id uuid,
    size_bytes bigint NOT NULL,
    -- The row of `annotation`.
    content jsonb NOT NULL,
    CONSTRAINT trashed_annotation_pkey PRIMARY KEY (organization_id, object_key),
    CONSTRAINT trashed_annotation_trash_id_fkey FOREIGN KEY (organization_id, trash_id)
        REFERENCES labdata.trash (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT trashed_annotation_size_bytes_check CHECK (size_bytes >= 0)
);

-- The annotations of an entry, and the bytes of an organization's, which quotas sum.
CREATE INDEX trashed_annotation_trash_id_idx ON labdata.trashed_annotation (organization_id, trash_id)
    INCLUDE (size_bytes);
-- Reverts.
CREATE INDEX trashed_annotation_job_execution_id_idx ON labdata.trashed_annotation (organization_id, job_execution_id)
    WHERE job_execution_id IS NOT NULL;
