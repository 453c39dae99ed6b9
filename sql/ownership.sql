-- PL/Python functions can only be made by a superuser, and must not stay one's own: SECURITY DEFINER
-- would run them as superuser. Hands everything over to the owner; PUBLIC may call none of it.
DO $do$
DECLARE
    routine regprocedure;
    owner oid;
BEGIN
    FOR routine, owner IN
        SELECT p.oid, p.proowner
        FROM pg_catalog.pg_proc AS p
        JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = 'mdistinct' OR (n.nspname = 'public' AND p.proname LIKE 'mdistinct\_%')
    LOOP
        -- What deals with pg_cron belongs to the role that jobs run as; its files say so.
        IF owner <> 'mdistinct_scheduler'::regrole THEN
            EXECUTE pg_catalog.format('ALTER ROUTINE %s OWNER TO mdistinct_owner', routine);
        END IF;
        EXECUTE pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', routine);
    END LOOP;
END
$do$;

ALTER TABLE IF EXISTS mdistinct.alembic_version OWNER TO mdistinct_owner;
