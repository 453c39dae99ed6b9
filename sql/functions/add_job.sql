-- Definer on purpose, and of the scheduler: pg_cron runs a job as the role that makes it.
CREATE OR REPLACE FUNCTION mdistinct.add_job(dataset name, cron text)
RETURNS void
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $python$
@LOAD@
scheduling.add_job(plpy, dataset, cron)
$python$;

ALTER FUNCTION mdistinct.add_job OWNER TO mdistinct_scheduler;
REVOKE ALL ON FUNCTION mdistinct.add_job FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.add_job TO mdistinct_owner;
COMMENT ON FUNCTION mdistinct.add_job IS
    'Makes or replaces the job of pg_cron that publishes a dataset';
