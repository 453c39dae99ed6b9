-- PL/Python functions can only be made by a superuser, and must not stay one's own: SECURITY DEFINER
-- would run them as superuser. Hands everything over to the owner; PUBLIC may call none of it.
DO $do$
DECLARE
    routine regprocedure;
BEGIN
    FOR routine IN
        SELECT p.oid
        FROM pg_catalog.pg_proc AS p
        JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = 'mdistinct' OR (n.nspname = 'public' AND p.proname LIKE 'mdistinct\_%')
    LOOP
        EXECUTE pg_catalog.format('ALTER ROUTINE %s OWNER TO mdistinct_owner', routine);
        EXECUTE pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', routine);
    END LOOP;
END
$do$;

ALTER TABLE IF EXISTS mdistinct.alembic_version OWNER TO mdistinct_owner;
