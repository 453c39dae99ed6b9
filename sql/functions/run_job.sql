-- Invoker on purpose, and without settings: PostgreSQL lets no other procedure commit. It names all
-- that it calls with the schema.
CREATE OR REPLACE PROCEDURE mdistinct.run_job(dataset name)
LANGUAGE plpython3u
SECURITY INVOKER
AS $python$
@LOAD@
scheduling.run_job(plpy, dataset)
$python$;

REVOKE ALL ON PROCEDURE mdistinct.run_job FROM PUBLIC;
GRANT EXECUTE ON PROCEDURE mdistinct.run_job TO mdistinct_publisher;
COMMENT ON PROCEDURE mdistinct.run_job IS
    'What pg_cron calls: a run that, where it fails, is written down and fails for pg_cron as well';
