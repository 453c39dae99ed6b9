-- Invoker on purpose: it reads a file of the server, and nothing of the database that needs rights.
-- Stable, so that it sees the same transactions as the statement which also reads the table.
CREATE OR REPLACE FUNCTION mdistinct.open_calls()
RETURNS TABLE (
    call uuid,
    began_at timestamp with time zone,
    ended_at timestamp with time zone,
    login name,
    role name,
    client_address inet,
    action text,
    dataset text,
    options jsonb,
    outcome text,
    sqlstate text,
    message text,
    result jsonb
)
LANGUAGE plpython3u
STABLE
PARALLEL UNSAFE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $python$
@LOAD@
return audit.open_calls(plpy)
$python$;

REVOKE ALL ON FUNCTION mdistinct.open_calls FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mdistinct.open_calls TO mdistinct_admin;
COMMENT ON FUNCTION mdistinct.open_calls IS
    'Calls that are running, or have ended since the audit trail was last written to its table';
