-- Definer on purpose: schedules belong to the owner of the plugin.
CREATE OR REPLACE FUNCTION public.mdistinct_unschedule(dataset name)
RETURNS void
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $python$
@LOAD@
scheduling.unschedule(plpy, dataset)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_unschedule FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_unschedule TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_unschedule IS
'Ends what mdistinct_schedule began

- dataset: the name that it was registered under';
