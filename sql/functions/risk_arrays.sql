-- Invoker on purpose: called by mdistinct_risk, as the owner of the plugin.
-- Stable on purpose: all of its queries see the history as it is at one moment.
-- Columns on purpose, as texts that PostgreSQL takes apart: a million rows one by one take many times
-- as long, and arrays of Python's objects still twice.
CREATE OR REPLACE FUNCTION mdistinct.risk_arrays(
    dataset name,
    at_release integer,
    OUT record_ids text,
    OUT separator text,
    OUT releases text,
    OUT different_risks double precision[],
    OUT risks text,
    OUT candidates text
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
COMMENT ON FUNCTION mdistinct.risk_arrays IS 'What mdistinct_risk returns, column by column

- record_ids: the identifiers
- separator: what stands between any two of them
- releases: an array of integers
- different_risks: every risk that occurs
- risks: an array of integers, which of these it is
- candidates: an array of integers';
