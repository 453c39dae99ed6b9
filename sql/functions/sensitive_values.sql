-- Definer on purpose: the source is read by functions of its owner, which the owner of the plugin
-- may call. Admins may see what it returns: errors name the same values to them.
CREATE OR REPLACE FUNCTION mdistinct.sensitive_values(
    dataset name,
    texts text[],
    OUT labels text[],
    OUT present text[]
)
LANGUAGE plpython3u
STABLE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Names of types are compared as they are written.
SET quote_all_identifiers = off
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
return learning.sensitive_values(plpy, dataset, texts)
$python$;

REVOKE ALL ON FUNCTION mdistinct.sensitive_values FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.sensitive_values TO mdistinct_admin;
COMMENT ON FUNCTION mdistinct.sensitive_values IS
    'The part of mdistinct_learn_updates that asks the source: how its type writes some texts, and which values it has';
