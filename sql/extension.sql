-- pg_dump leaves out the rows of an extension's tables unless it is told that they are the user's.
DO $do$
DECLARE
    relation regclass;
BEGIN
    FOR relation IN
        SELECT c.oid
        FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = 'mdistinct' AND c.relkind IN ('r', 'S')
    LOOP
        PERFORM pg_catalog.pg_extension_config_dump(relation, '');
    END LOOP;
END
$do$;
