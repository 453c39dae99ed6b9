-- Invoker on purpose: it reads nothing itself.
-- In SQL, as it is asked for every run of a list.
CREATE OR REPLACE FUNCTION mdistinct.run_status(run bigint, status text)
RETURNS text
LANGUAGE sql
STABLE
STRICT
PARALLEL RESTRICTED
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $sql$
    SELECT CASE
        WHEN run_status.status = 'running' AND mdistinct.run_sessions(run_status.run) IS NULL
        THEN 'interrupted'
        ELSE run_status.status
    END
$sql$;

REVOKE ALL ON FUNCTION mdistinct.run_status FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.run_status TO mdistinct_admin;
COMMENT ON FUNCTION mdistinct.run_status IS
    'How a run stands: the status given, or interrupted where it runs no more and has not ended';
