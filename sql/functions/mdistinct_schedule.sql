-- Definer on purpose: schedules belong to the owner of the plugin.
CREATE OR REPLACE FUNCTION public.mdistinct_schedule(dataset name, cron text)
RETURNS timestamp with time zone
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET datestyle = 'ISO, YMD'
SET timezone = 'UTC'
AS $python$
@LOAD@
return scheduling.schedule(plpy, dataset, cron)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_schedule FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_schedule TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_schedule IS
'Lets pg_cron publish a dataset, in place of an earlier schedule; returns the first run

- dataset: the name that it was registered under
- cron: five fields as for cron, such as 0 2 * * 0, or @daily and the like';
