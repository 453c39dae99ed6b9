-- Invoker on purpose: called by mdistinct_risk, as the owner of the plugin.
-- Stable on purpose: all of its queries see the history as it is at one moment.
-- Arrays on purpose: a million rows one by one take several times as long.
CREATE OR REPLACE FUNCTION mdistinct.risk_arrays(
    dataset name,
    at_release integer,
    OUT record_ids text[],
    OUT releases integer[],
    OUT risks double precision[],
    OUT candidates integer[]
)
LANGUAGE plpython3u
STABLE
PARALLEL UNSAFE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $python$
@LOAD@
return risk.risk(plpy, dataset, at_release)
$python$;

REVOKE ALL ON FUNCTION mdistinct.risk_arrays FROM PUBLIC;
COMMENT ON FUNCTION mdistinct.risk_arrays IS 'What mdistinct_risk returns, column by column';
