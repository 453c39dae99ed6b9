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
'A record''s update graph: candidates of each version and the updates between them

- dataset: the name that it was registered under
- record_id: the record, as the view mdistinct.<dataset>_membership shows it
- true_path: whether is_true is told
- kind: node for a candidate, edge for an update
- release: the release of the candidate, or that of the earlier one
- value: the candidate, or the earlier one
- next_release: the release of the later candidate
- next_value: the later candidate
- weight: the share of the group that has the value, or the probability of the update by the model
- posterior: how likely the adversary thinks it is
- feasible: false if it can be excluded
- is_true: whether it is the truth; NULL unless asked for';
