-- Only a superuser can open pg_cron's schema to the role that schedules and runs our jobs.
DO $do$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_cron') THEN
        GRANT USAGE ON SCHEMA cron TO mdistinct_scheduler;
    END IF;
END
$do$;
