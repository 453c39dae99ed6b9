-- Definer on purpose: the history belongs to the owner of the plugin.
CREATE OR REPLACE FUNCTION public.mdistinct_preview_risk(dataset name)
RETURNS TABLE (
    release integer,
    versions integer,
    risk_before double precision,
    risk_after double precision,
    raised integer,
    above_bound integer
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
SET jit = off
AS $python$
@LOAD@
return looking.preview_risk(plpy, dataset)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_preview_risk FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_preview_risk TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_preview_risk IS
'What the next release would do to the risk of earlier versions; writes nothing

- dataset: the name that it was registered under
- release: a release; the last line is the one that would be published
- versions: its versions
- risk_before: their largest risk as it is now
- risk_after: their largest risk after the next release
- raised: how many would be at greater risk
- above_bound: how many would be above max_risk';
