-- Definer on purpose: the trail of runs belongs to the owner of the plugin.
CREATE OR REPLACE FUNCTION mdistinct.run(dataset name)
RETURNS mdistinct.runs
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
return scheduling.run_once(plpy, dataset)
$python$;

REVOKE ALL ON FUNCTION mdistinct.run FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.run TO mdistinct_publisher;
COMMENT ON FUNCTION mdistinct.run IS
    'Publishes a dataset and writes down how that ended, also where it failed';
