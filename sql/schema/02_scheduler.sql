-- pg_cron runs a job as the role that scheduled it, so scheduled publications have a role of their
-- own: a publisher and nothing more. It can log in, because pg_cron starts a session for each run
-- and PostgreSQL refuses sessions of roles that cannot, even to background workers. It has no
-- password, so that nobody else gets in where passwords are asked for.
DO $do$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'mdistinct_scheduler') THEN
        CREATE ROLE mdistinct_scheduler;
    END IF;
END
$do$;

-- A role of this name that somebody made with more power must not get our rights on top.
ALTER ROLE mdistinct_scheduler
    LOGIN PASSWORD NULL
    NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS INHERIT;
GRANT mdistinct_publisher TO mdistinct_scheduler;

-- Runs are started by functions of this schema; what its tables hold stays out of sight.
GRANT USAGE ON SCHEMA mdistinct TO mdistinct_publisher;

-- cron.timezone, by which the next run is reckoned, is hidden from all others.
GRANT pg_read_all_settings TO mdistinct_owner;

COMMENT ON ROLE mdistinct_scheduler IS 'runs the scheduled publications of pg_mdistinct';
