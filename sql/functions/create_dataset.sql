-- Definer on purpose: catalog and tables belong to the owner of the plugin.
CREATE OR REPLACE FUNCTION mdistinct.create_dataset(
    dataset name,
    -- An OID and no regclass: reading its name again would need rights on the source's schema.
    source oid,
    id_column name,
    qi_columns name[],
    sensitive_column name,
    m integer,
    variant text,
    max_risk double precision
)
RETURNS mdistinct.datasets
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Names of types are compared as they are written.
SET quote_all_identifiers = off
AS $python$
@LOAD@
return registration.create_dataset(
    plpy, dataset, source, id_column, qi_columns, sensitive_column, m, variant, max_risk)
$python$;

REVOKE ALL ON FUNCTION mdistinct.create_dataset FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.create_dataset TO mdistinct_admin;
COMMENT ON FUNCTION mdistinct.create_dataset IS
    'The part of mdistinct_register that writes the catalog and makes the tables';
