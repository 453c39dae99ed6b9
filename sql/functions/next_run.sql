-- Definer on purpose: superusers and the owner alone read cron.timezone.
CREATE OR REPLACE FUNCTION mdistinct.next_run(cron text, after timestamp with time zone)
RETURNS timestamp with time zone
LANGUAGE plpython3u
STABLE
STRICT
PARALLEL SAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- PL/Python gets the moment as text.
SET datestyle = 'ISO, YMD'
SET timezone = 'UTC'
AS $python$
@LOAD@
return scheduling.next_run(plpy, cron, after)
$python$;

REVOKE ALL ON FUNCTION mdistinct.next_run FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.next_run TO mdistinct_admin;
COMMENT ON FUNCTION mdistinct.next_run IS
    'The first moment after the given one at which a cron expression, read as pg_cron does, comes round';
