-- Definer on purpose: the history belongs to the owner of the plugin.
CREATE OR REPLACE FUNCTION public.mdistinct_create_buckets(dataset name)
RETURNS TABLE (
    bucket integer,
    kind text,
    groups integer,
    entry integer,
    reach text[],
    records integer
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
return looking.create_buckets(plpy, dataset)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_create_buckets FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_create_buckets TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_create_buckets IS
'The buckets that the next publication would use, one row for each entry; writes nothing

- dataset: the name that it was registered under
- bucket: number of the bucket
- kind: where its signature comes from
- groups: how many groups it will be split into
- entry: number of the entry within the bucket
- reach: the values that may stand there
- records: how many records stand there; counterfeits fill up to the number of groups';
