-- Invoker on purpose, and without settings: PostgreSQL lets no other procedure commit. It names all
-- that it calls with the schema.
CREATE OR REPLACE PROCEDURE public.mdistinct_publish_all(
    INOUT published integer DEFAULT NULL,
    INOUT skipped integer DEFAULT NULL,
    INOUT failed integer DEFAULT NULL
)
LANGUAGE plpython3u
SECURITY INVOKER
AS $python$
@LOAD@
return scheduling.publish_all(plpy)
$python$;

REVOKE ALL ON PROCEDURE public.mdistinct_publish_all FROM PUBLIC;
GRANT EXECUTE ON PROCEDURE public.mdistinct_publish_all TO mdistinct_publisher, mdistinct_admin;
COMMENT ON PROCEDURE public.mdistinct_publish_all IS
'Publishes every dataset that is due, each in a transaction of its own

- published: returns how many were published
- skipped: returns how many were being published already
- failed: returns how many failed';
