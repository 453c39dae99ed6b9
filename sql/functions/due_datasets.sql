-- Definer on purpose: publishers do not read the catalog.
CREATE OR REPLACE FUNCTION mdistinct.due_datasets()
RETURNS SETOF name
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- They would show a caller the values that statements work with.
SET debug_print_parse = off
SET debug_print_rewritten = off
SET debug_print_plan = off
SET datestyle = 'ISO, YMD'
SET timezone = 'UTC'
AS $python$
@LOAD@
return scheduling.due_datasets(plpy)
$python$;

REVOKE ALL ON FUNCTION mdistinct.due_datasets FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.due_datasets TO mdistinct_publisher;
COMMENT ON FUNCTION mdistinct.due_datasets IS
    'Datasets without a schedule, and those whose schedule has come round since their last run';
