-- Invoker on purpose: the history is read with the rights of the caller.
CREATE OR REPLACE FUNCTION public.mdistinct_learn_updates(
    dataset name,
    source regclass,
    id name,
    "order" name,
    value name,
    smoothing double precision DEFAULT 0.5,
    possible text DEFAULT 'observed',
    max_gap text DEFAULT NULL,
    rare integer DEFAULT 5,
    thin integer DEFAULT 30,
    apply boolean DEFAULT true
)
RETURNS TABLE (
    old_value text,
    new_value text,
    seen bigint,
    probability double precision,
    note text
)
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY INVOKER
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
return learning.learn(
    plpy, dataset, source, id, order, value, smoothing, possible, max_gap, rare, thin, apply)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_learn_updates FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_learn_updates TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_learn_updates IS
    'Estimates the update model from a history of values, and returns every pair of values with how often it was seen';
