-- Roles belong to the whole cluster: another database may have made them already.
DO $do$
DECLARE
    role_name name;
BEGIN
    FOREACH role_name IN ARRAY ARRAY[
        'mdistinct_owner', 'mdistinct_reader', 'mdistinct_publisher', 'mdistinct_admin']::name[]
    LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role_name) THEN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', role_name);
        END IF;
        -- A role of this name that somebody made with more power must not get our rights on top.
        EXECUTE pg_catalog.format(
            'ALTER ROLE %I NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS', role_name);
    END LOOP;
END
$do$;

-- The owner runs the SECURITY DEFINER functions; nobody connects as it.
ALTER ROLE mdistinct_owner NOLOGIN;
GRANT mdistinct_reader, mdistinct_publisher TO mdistinct_admin;

COMMENT ON ROLE mdistinct_owner IS 'owns the objects of pg_mdistinct; nobody connects as it';
COMMENT ON ROLE mdistinct_reader IS 'reads what pg_mdistinct has published, nothing else';
COMMENT ON ROLE mdistinct_publisher IS 'publishes registered datasets, sees no microdata';
COMMENT ON ROLE mdistinct_admin IS 'registers datasets, inspects and verifies their history';
