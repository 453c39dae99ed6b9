-- Invoker on purpose: it computes, and touches nothing of the database.
CREATE OR REPLACE FUNCTION mdistinct.warm_up()
RETURNS void
LANGUAGE plpython3u
VOLATILE
PARALLEL UNSAFE
SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $python$
@LOAD@
warm_up.compile_core(plpy)
$python$;

REVOKE ALL ON FUNCTION mdistinct.warm_up FROM PUBLIC;
COMMENT ON FUNCTION mdistinct.warm_up IS
    'Compiles the code of the core; the installer calls it';
