-- Invoker on purpose: the caller must be able to read a source that he names.
CREATE OR REPLACE FUNCTION public.mdistinct_alter(
    dataset name,
    source regclass DEFAULT NULL,
    qi_columns name[] DEFAULT NULL,
    m integer DEFAULT NULL,
    variant text DEFAULT NULL,
    max_risk double precision DEFAULT NULL
)
RETURNS mdistinct.datasets
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
-- Names of types are compared as they are written.
SET quote_all_identifiers = off
AS $python$
@LOAD@
return alteration.alter(plpy, dataset, source, qi_columns, m, variant, max_risk)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_alter FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_alter TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_alter IS
'Changes what a dataset was registered with from the next release on; what is NULL stays

- dataset: the name that it was registered under
- source: another table or view with the same columns
- qi_columns: all QI columns; new ones come after those that are there
- m: a smaller one for records that are new, or a larger one if no record has fewer candidates
- variant: another variant of the principle, before the first release or in place of m-invariance
- max_risk: another bound on the risk; 1 lifts it';
