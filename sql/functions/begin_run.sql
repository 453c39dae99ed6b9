-- Definer on purpose: the trail of runs belongs to the owner of the plugin.
CREATE OR REPLACE FUNCTION mdistinct.begin_run(dataset name)
RETURNS bigint
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- They would show a caller the values that statements work with.
SET debug_print_parse = off
SET debug_print_rewritten = off
SET debug_print_plan = off
AS $python$
@LOAD@
return scheduling.begin_run(plpy, dataset)
$python$;

REVOKE ALL ON FUNCTION mdistinct.begin_run FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.begin_run TO mdistinct_publisher;
COMMENT ON FUNCTION mdistinct.begin_run IS
    'Writes down that a run begins, and holds its lock until the session unlocks it or ends';
