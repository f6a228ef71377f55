-- Masks of images, each with a label. The PNG is an object in the object storage (docs/adr/0046).
CREATE TABLE labdata.annotation (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    file_id uuid NOT NULL,
    -- The execution under which it was saved, whose revert deletes it.
    job_execution_id uuid,
    -- A label exists while a mask bears it.
    label text NOT NULL,
    object_key uuid NOT NULL,
    size_bytes bigint NOT NULL,
    -- Size of the image, number of foreground pixels, and the rectangle around them.
    width bigint NOT NULL,
    height bigint NOT NULL,
    foreground bigint NOT NULL,
    box_x bigint NOT NULL,
    box_y bigint NOT NULL,
    box_width bigint NOT NULL,
    box_height bigint NOT NULL,
    is_human_vetted boolean NOT NULL,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT annotation_pkey PRIMARY KEY (organization_id, id),
    -- With the record of its image, a mask goes.
    CONSTRAINT annotation_file_id_fkey FOREIGN KEY (organization_id, file_id)
        REFERENCES labdata.file (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT annotation_job_execution_id_fkey FOREIGN KEY (organization_id, job_execution_id)
        REFERENCES labdata.job_execution (organization_id, id),
    CONSTRAINT annotation_created_by_fkey FOREIGN KEY (organization_id, created_by)
        REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT annotation_size_bytes_check CHECK (size_bytes >= 0),
    CONSTRAINT annotation_foreground_check CHECK (foreground BETWEEN 1 AND width * height),
    CONSTRAINT annotation_box_check CHECK (
        box_x >= 0 AND box_y >= 0 AND box_width > 0 AND box_height > 0
            AND box_x + box_width <= width AND box_y + box_height <= height
    )
);

-- The list of an image.
CREATE INDEX annotation_list_idx ON labdata.annotation (organization_id, file_id, created_at, id);
-- Reverts.
CREATE INDEX annotation_job_execution_id_idx ON labdata.annotation (organization_id, job_execution_id)
    WHERE job_execution_id IS NOT NULL;
-- Datasets of a label.
CREATE INDEX annotation_vetted_idx ON labdata.annotation (organization_id, label, file_id) WHERE is_human_vetted;
CREATE INDEX annotation_created_by_idx ON labdata.annotation (organization_id, created_by);
-- The sweeper of uploads asks which objects are referenced.
CREATE UNIQUE INDEX annotation_object_key_idx ON labdata.annotation (object_key);
-- Bytes of an organization's masks, which quotas sum.
CREATE INDEX annotation_size_idx ON labdata.annotation (organization_id) INCLUDE (size_bytes);

-- Masks of datasets of annotations: one of each image, made of its vetted masks. The id is the key of the object, and
-- the value in the dataset's column of masks.
CREATE TABLE labdata.dataset_mask (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    dataset_id uuid NOT NULL,
    size_bytes bigint NOT NULL CONSTRAINT dataset_mask_size_bytes_check CHECK (size_bytes >= 0),
    CONSTRAINT dataset_mask_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT dataset_mask_dataset_id_fkey FOREIGN KEY (organization_id, dataset_id)
        REFERENCES labdata.dataset (organization_id, id)
);

CREATE INDEX dataset_mask_dataset_id_idx ON labdata.dataset_mask (organization_id, dataset_id) INCLUDE (size_bytes);

-- The label of a dataset of annotations. Its `source_query` says the same in words, so that servers of an earlier
-- version read the row.
ALTER TABLE labdata.dataset ADD COLUMN source_label text;
