-- Definer on purpose: publishers see neither the source nor the history.
CREATE OR REPLACE FUNCTION public.mdistinct_preview(dataset name, wait boolean DEFAULT false)
RETURNS mdistinct.publication
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
SET datestyle = 'ISO, YMD'
SET intervalstyle = 'postgres'
SET timezone = 'UTC'
SET extra_float_digits = 1
SET bytea_output = 'hex'
SET lc_monetary = 'C'
-- The queries are big but simple: compiling them takes longer than it saves.
SET jit = off
-- A snapshot of some hundred thousand records is read and sorted without a detour over the disk.
SET work_mem = '64MB'
AS $python$
@LOAD@
return publication.preview(plpy, dataset, wait)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_preview FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_preview TO mdistinct_publisher, mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_preview IS
'The row that mdistinct_publish would return, but for the chance in its groups; writes nothing

- dataset: the name that it was registered under
- wait: whether to wait for a running publication of the dataset, or to fail';
