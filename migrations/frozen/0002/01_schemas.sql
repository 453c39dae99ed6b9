-- mdistinct exists already where alembic has made it for its version table.
CREATE SCHEMA IF NOT EXISTS mdistinct;
CREATE SCHEMA mdistinct_published;
CREATE SCHEMA mdistinct_data;
CREATE SCHEMA mdistinct_sources;

ALTER SCHEMA mdistinct OWNER TO mdistinct_owner;
ALTER SCHEMA mdistinct_published OWNER TO mdistinct_owner;
ALTER SCHEMA mdistinct_data OWNER TO mdistinct_owner;
ALTER SCHEMA mdistinct_sources OWNER TO mdistinct_owner;

REVOKE ALL ON SCHEMA mdistinct, mdistinct_published, mdistinct_data, mdistinct_sources FROM PUBLIC;
GRANT USAGE ON SCHEMA mdistinct TO mdistinct_admin;
GRANT USAGE ON SCHEMA mdistinct_published TO mdistinct_reader;
GRANT USAGE, CREATE ON SCHEMA mdistinct_sources TO mdistinct_admin;

-- The contract's functions are called without a prefix, also where PUBLIC has lost its rights here.
GRANT USAGE ON SCHEMA public
    TO mdistinct_owner, mdistinct_reader, mdistinct_publisher, mdistinct_admin;

-- A preview works on temporary tables, as the owner.
DO $do$
BEGIN
    EXECUTE pg_catalog.format(
        'GRANT TEMPORARY ON DATABASE %I TO mdistinct_owner', pg_catalog.current_database());
END
$do$;

COMMENT ON SCHEMA mdistinct IS 'catalog of pg_mdistinct: datasets, update models, releases, who is in which group';
COMMENT ON SCHEMA mdistinct_published IS 'what pg_mdistinct has published, for mdistinct_reader';
COMMENT ON SCHEMA mdistinct_data IS 'the history of every dataset; for the functions of pg_mdistinct alone';
COMMENT ON SCHEMA mdistinct_sources IS 'one function per dataset that reads its source with the rights of the source''s owner';
