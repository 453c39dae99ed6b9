-- Definer on purpose: the history belongs to the owner of the plugin.
CREATE OR REPLACE FUNCTION public.mdistinct_assign_records(dataset name)
RETURNS TABLE (
    record_id text,
    value text,
    bucket integer,
    entry integer
)
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Names of types are compared as they are written.
SET quote_all_identifiers = off
SET datestyle = 'ISO, YMD'
SET intervalstyle = 'postgres'
SET timezone = 'UTC'
SET extra_float_digits = 1
SET bytea_output = 'hex'
SET lc_monetary = 'C'
-- The queries are big but simple: compiling them takes longer than it saves.
SET jit = off
AS $python$
@LOAD@
return looking.assign_records(plpy, dataset)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_assign_records FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_assign_records TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_assign_records IS
'The bucket and entry that each record would get in the next publication; writes nothing

- dataset: the name that it was registered under
- record_id: the record
- value: its sensitive value
- bucket: its bucket
- entry: its place in the signature of that bucket';
