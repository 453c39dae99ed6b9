-- Definer on purpose: readers see the groups as rows, and reading each group once takes a fraction
-- of the time. Only the tables behind mdistinct_published are read, for those who may read these.
-- Stable on purpose: all of its queries see the releases as they are at one moment.
CREATE OR REPLACE FUNCTION public.mdistinct_estimate(
    dataset name,
    release integer DEFAULT NULL,
    predicate jsonb DEFAULT '{}',
    measure name DEFAULT NULL,
    OUT count double precision,
    OUT count_error double precision,
    OUT at_least bigint,
    OUT at_most bigint,
    OUT sum double precision,
    OUT sum_error double precision,
    OUT avg double precision,
    OUT avg_error double precision
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
-- They would show a caller the values that statements work with.
SET debug_print_parse = off
SET debug_print_rewritten = off
SET debug_print_plan = off
SET datestyle = 'ISO, YMD'
SET intervalstyle = 'postgres'
SET timezone = 'UTC'
SET jit = off
AS $python$
@LOAD@
return estimation.estimate(plpy, dataset, release, predicate, measure)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_estimate FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_estimate TO mdistinct_reader, mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_estimate IS
'Estimates from a release how many records meet a predicate, and sum and average of a QI column, with standard errors

- dataset: the name that it was registered under
- release: the release to ask; without one the latest
- predicate: a JSON object of columns and conditions, all of which must be met
- measure: a QI column with numbers, for sum and average
- count: how many records meet the predicate, as far as can be told
- count_error: the standard error of the count
- at_least: there are certainly not fewer
- at_most: there are certainly not more
- sum: the sum of the measure over these records; NULL without one
- sum_error: its standard error
- avg: the average of the measure; NULL without one
- avg_error: its standard error';
