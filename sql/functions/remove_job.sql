-- Definer on purpose, and of the scheduler: pg_cron runs a job as the role that makes it.
CREATE OR REPLACE FUNCTION mdistinct.remove_job(dataset name)
RETURNS void
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $python$
@LOAD@
scheduling.remove_job(plpy, dataset)
$python$;

ALTER FUNCTION mdistinct.remove_job OWNER TO mdistinct_scheduler;
REVOKE ALL ON FUNCTION mdistinct.remove_job FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.remove_job TO mdistinct_owner;
COMMENT ON FUNCTION mdistinct.remove_job IS
    'Removes the job of pg_cron that publishes a dataset';
