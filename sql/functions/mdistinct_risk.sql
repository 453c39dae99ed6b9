-- Definer on purpose: the history belongs to the owner of the plugin.
CREATE OR REPLACE FUNCTION public.mdistinct_risk(dataset name, at_release integer DEFAULT NULL)
RETURNS TABLE (
    record_id text,
    release integer,
    risk double precision,
    candidates integer
)
LANGUAGE sql
STABLE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $sql$
-- An empty text is no text for string_to_array, where it is the only one.
SELECT coalesce(t.record_id, ''), t.release, t.different_risks[t.risk], t.candidates
FROM (
    SELECT unnest(string_to_array(a.record_ids, a.separator)) AS record_id,
        unnest(a.releases::integer[]) AS release,
        unnest(a.risks::integer[]) AS risk,
        unnest(a.candidates::integer[]) AS candidates,
        a.different_risks
    FROM mdistinct.risk_arrays($1, $2) AS a
) AS t
$sql$;

REVOKE ALL ON FUNCTION public.mdistinct_risk FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_risk TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_risk IS
'The probability with which an adversary links each version of each record to its value

- dataset: the name that it was registered under
- at_release: as it was after this release; without one, the latest
- record_id: the record
- release: the release of the version
- risk: how sure the adversary is of its true value
- candidates: how many values cannot be excluded; 1 means that it is disclosed';
