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
'Estimates the update model from a history of values, and returns every pair of values with how often it was seen

- dataset: the name that it was registered under
- source: a table or view of who had which value when
- id: its column that tells who
- order: its column that tells when
- value: its column that tells which value
- smoothing: added to the count of each possible pair
- possible: which pairs the model has: observed ones, symmetric for these and their reverses, or all
- max_gap: the longest time between two values that counts as an update: a number, or an interval
- rare: pairs that were seen less often are noted as rare
- thin: a warning names values with fewer updates
- apply: whether the model is put in place, or only shown
- old_value: the value before
- new_value: the value after
- seen: how often this was seen
- probability: what the model makes of it
- note: rare, unseen (but possible), impossible, or NULL';
