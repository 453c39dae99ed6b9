-- Definer on purpose: the history belongs to the owner of the plugin.
-- Stable on purpose: all of its queries see the history as it is at one moment.
CREATE OR REPLACE FUNCTION public.mdistinct_verify(dataset name)
RETURNS TABLE (
    release integer,
    gid integer,
    record_id text,
    rule text,
    detail text
)
LANGUAGE plpython3u
STABLE
PARALLEL UNSAFE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Names of types are compared as they are written.
SET quote_all_identifiers = off
SET jit = off
AS $python$
@LOAD@
return verification.verify(plpy, dataset)
$python$;

REVOKE ALL ON FUNCTION public.mdistinct_verify FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_verify TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_verify IS
'One row for each violation of the principle in the whole release history; no row: it holds

- dataset: the name that it was registered under
- release: the release that breaks the principle
- gid: the group
- record_id: the record, where the rule is about one
- rule: the rule that is broken
- detail: how';
