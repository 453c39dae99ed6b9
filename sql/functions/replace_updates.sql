-- Definer on purpose: the update model belongs to the owner of the plugin.
CREATE OR REPLACE FUNCTION mdistinct.replace_updates(
    dataset name,
    old_values text[],
    new_values text[],
    probabilities double precision[]
)
RETURNS void
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
AS $python$
@LOAD@
updates.replace(plpy, dataset, old_values, new_values, probabilities)
$python$;

REVOKE ALL ON FUNCTION mdistinct.replace_updates FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.replace_updates TO mdistinct_admin;
COMMENT ON FUNCTION mdistinct.replace_updates IS
    'The part of mdistinct_load_updates that writes the update model';
