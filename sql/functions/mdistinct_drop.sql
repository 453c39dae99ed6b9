-- Definer on purpose: what goes belongs to the owner of the plugin.
CREATE OR REPLACE FUNCTION public.mdistinct_drop(dataset name)
RETURNS void
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $python$
@LOAD@
registration.drop(plpy, dataset)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_drop FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_drop TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_drop IS
'Forgets a dataset with its whole history; the source table is never touched

- dataset: the name that it was registered under';
