-- The source is kept by name: a table that is replaced by one of the same name and columns, as
-- reloads do, stays the source.
CREATE TABLE mdistinct.datasets (
    dataset name PRIMARY KEY,
    source_schema name NOT NULL,
    source_table name NOT NULL,
    id_column name NOT NULL,
    id_type text NOT NULL,
    qi_columns name[] NOT NULL,
    qi_types text[] NOT NULL,
    sensitive_column name NOT NULL,
    sensitive_type text NOT NULL,
    m integer NOT NULL CHECK (m >= 2),
    variant text NOT NULL CHECK (variant IN ('m-distinct', 'm-distinct*', 'm-invariance')),
    max_risk double precision CHECK (max_risk > 0 AND max_risk <= 1),
    registered_by name NOT NULL,
    registered_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now(),
    last_release integer NOT NULL DEFAULT 0 CHECK (last_release >= 0)
);

REVOKE ALL ON mdistinct.datasets FROM PUBLIC;
GRANT SELECT ON mdistinct.datasets TO mdistinct_admin;
COMMENT ON TABLE mdistinct.datasets IS 'Registered datasets: their source, columns and parameters';
