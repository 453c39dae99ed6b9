-- Definer on purpose: publishers see neither the source nor the history.
CREATE OR REPLACE FUNCTION public.mdistinct_publish(dataset name, wait boolean DEFAULT false)
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
return publication.publish(plpy, dataset, wait)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_publish FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_publish TO mdistinct_publisher, mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_publish IS
'Snapshots the source, anonymizes it and publishes the next release

- dataset: the name that it was registered under
- wait: whether to wait for a running publication of the dataset, or to fail';
