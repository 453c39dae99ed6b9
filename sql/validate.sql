-- Functions are made in the order of their files' names, before what they call exists, so their
-- bodies are checked here, when all of them are there.
DO $do$
DECLARE
    validator regprocedure;
    routine oid;
BEGIN
    FOR validator, routine IN
        SELECT l.lanvalidator, p.oid
        FROM pg_catalog.pg_proc AS p
        JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
        JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
        WHERE l.lanvalidator <> 0
            AND (n.nspname = 'mdistinct' OR (n.nspname = 'public' AND p.proname LIKE 'mdistinct\_%'))
    LOOP
        EXECUTE pg_catalog.format('SELECT %s(%s)', validator::oid::regproc, routine);
    END LOOP;
END
$do$;
