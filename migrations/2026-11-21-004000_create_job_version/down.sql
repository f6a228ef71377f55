ALTER TABLE labdata.job
    DROP COLUMN revision,
    DROP COLUMN version_number;
DROP TABLE labdata.job_version;
