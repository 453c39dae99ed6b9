-- Invoker on purpose: the table is read with the rights of the caller.
CREATE OR REPLACE FUNCTION public.mdistinct_load_updates(dataset name, source regclass)
RETURNS integer
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
-- Names of types are compared as they are written.
SET quote_all_identifiers = off
SET datestyle = 'ISO, YMD'
SET intervalstyle = 'postgres'
SET timezone = 'UTC'
SET extra_float_digits = 1
SET bytea_output = 'hex'
SET lc_monetary = 'C'
AS $python$
@LOAD@
return updates.load(plpy, dataset, source)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_load_updates FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_load_updates TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_load_updates IS
'Declares the updates of a whole table or view with columns old_value, new_value, probability; returns their number

- dataset: the name that it was registered under
- source: the table or view; probability may be NULL or absent, for equally likely updates';
