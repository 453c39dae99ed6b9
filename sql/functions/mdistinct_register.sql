-- Invoker on purpose: the caller must be able to read what he registers.
CREATE OR REPLACE FUNCTION public.mdistinct_register(
    dataset name,
    source regclass,
    id_column name,
    qi_columns name[],
    sensitive_column name,
    m integer,
    variant text DEFAULT 'm-distinct',
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
return registration.register(
    plpy, dataset, source, id_column, qi_columns, sensitive_column, m, variant, max_risk)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_register FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_register TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_register IS
'Registers a table or view as a dynamic dataset

- dataset: a name, which the published relations will have, too
- source: the table or view to publish
- id_column: the column that tells records apart, in all releases; it is never published
- qi_columns: the quasi-identifiers, which are published as ranges and sets
- sensitive_column: the column to protect, which is published as it is
- m: how many rows with different sensitive values each group has at least
- variant: the variant of the principle: m-distinct, m-distinct* or m-invariance
- max_risk: a bound on the risk of every version, which no release may break; without one it is measured only';
