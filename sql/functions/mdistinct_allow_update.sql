-- Definer on purpose: the update model belongs to the owner of the plugin.
CREATE OR REPLACE FUNCTION public.mdistinct_allow_update(
    dataset name,
    old_value text,
    new_values text[],
    probabilities double precision[] DEFAULT NULL
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
updates.allow(plpy, dataset, old_value, new_values, probabilities)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_allow_update FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_allow_update TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_allow_update IS
'Declares the values that old_value may become by the next release; called again, it replaces them

- dataset: the name that it was registered under
- old_value: a sensitive value, as a text
- new_values: what it may become; itself, too, if it may stay what it is
- probabilities: one for each of them, which sum to 1; without any they are equally likely';
