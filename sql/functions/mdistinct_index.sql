-- Definer on purpose: the tables of releases belong to the owner of the plugin.
CREATE OR REPLACE FUNCTION public.mdistinct_index(dataset name)
RETURNS integer
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Names of types are compared as they are written.
SET quote_all_identifiers = off
-- They would show a caller the values that statements work with.
SET debug_print_parse = off
SET debug_print_rewritten = off
SET debug_print_plan = off
AS $python$
@LOAD@
return indexing.index(plpy, dataset)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_index FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_index TO mdistinct_publisher, mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_index IS
'Makes indexes on the ranges and sets of all releases that have none, for quick estimates; returns the number of releases

- dataset: the name that it was registered under';
