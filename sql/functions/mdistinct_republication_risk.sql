-- Definer on purpose: the history belongs to the owner of the plugin.
-- Stable on purpose: all of its queries see the history as it is at one moment.
CREATE OR REPLACE FUNCTION public.mdistinct_republication_risk(dataset name)
RETURNS double precision
LANGUAGE plpython3u
STABLE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $python$
@LOAD@
return risk.republication_risk(plpy, dataset)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_republication_risk FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_republication_risk TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_republication_risk IS
'The largest risk of any version of any record after any release so far

- dataset: the name that it was registered under';
