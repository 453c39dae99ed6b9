-- pg_cron shows a job to the role that it runs as alone, so what is scheduled stands here as well.
CREATE TABLE mdistinct.schedules (
    dataset name PRIMARY KEY REFERENCES mdistinct.datasets ON DELETE CASCADE,
    cron text NOT NULL,
    scheduled_by name NOT NULL,
    scheduled_at timestamp with time zone NOT NULL DEFAULT pg_catalog.clock_timestamp()
);

REVOKE ALL ON mdistinct.schedules FROM PUBLIC;
GRANT SELECT ON mdistinct.schedules TO mdistinct_admin;
COMMENT ON TABLE mdistinct.schedules IS 'When datasets are to be published by pg_cron';
