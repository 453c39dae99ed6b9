-- Definer on purpose: the history belongs to the owner of the plugin.
-- Stable on purpose: all of its queries see the history as it is at one moment.
CREATE OR REPLACE FUNCTION public.mdistinct_sug(
    dataset name,
    record_id text,
    true_path boolean DEFAULT false
)
RETURNS TABLE (
    kind text,
    release integer,
    value text,
    next_release integer,
    next_value text,
    weight double precision,
    posterior double precision,
    feasible boolean,
    is_true boolean
)
LANGUAGE plpython3u
STABLE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $python$
@LOAD@
return risk.sug(plpy, dataset, record_id, true_path)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_sug FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_sug TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_sug IS
    'A record''s update graph: candidates of each version and the updates between them';
