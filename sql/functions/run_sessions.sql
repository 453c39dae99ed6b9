-- Invoker on purpose: what it reads anybody may read.
-- In SQL, as it is asked for every run of a list. A lock with two keys has 2 as its objsubid.
CREATE OR REPLACE FUNCTION mdistinct.run_sessions(run bigint)
RETURNS integer[]
LANGUAGE sql
STABLE
STRICT
PARALLEL RESTRICTED
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $sql$
    SELECT pg_catalog.array_agg(l.pid)
    FROM pg_catalog.pg_locks AS l
    JOIN pg_catalog.pg_database AS d
        ON d.oid = l.database AND d.datname = pg_catalog.current_database()
    WHERE l.locktype = 'advisory'
        AND l.classid = 'mdistinct.runs'::pg_catalog.regclass
        AND l.objid::pg_catalog.int8 = run_sessions.run
        AND l.objsubid = 2
        AND l.granted
$sql$;

REVOKE ALL ON FUNCTION mdistinct.run_sessions FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.run_sessions TO mdistinct_admin;
COMMENT ON FUNCTION mdistinct.run_sessions IS
    'The process numbers of the sessions that hold the lock of a run';
