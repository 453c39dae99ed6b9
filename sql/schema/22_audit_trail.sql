-- No reference to the datasets: the trail outlives them. Nobody but the owner may write here, and
-- the functions only ever add rows.
CREATE TABLE mdistinct.audit_trail (
    call uuid PRIMARY KEY,
    began_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    login name NOT NULL,
    role name NOT NULL,
    client_address inet,
    action text NOT NULL,
    dataset text,
    options jsonb NOT NULL,
    outcome text NOT NULL
        CHECK (outcome IN ('succeeded', 'failed', 'rolled back', 'unfinished')),
    sqlstate text,
    message text,
    result jsonb,
    -- Tells a row that is still to be committed from one that is.
    transaction xid8 NOT NULL DEFAULT pg_catalog.pg_current_xact_id(),
    CHECK ((outcome = 'failed') = (sqlstate IS NOT NULL))
);

CREATE INDEX ON mdistinct.audit_trail (began_at);

REVOKE ALL ON mdistinct.audit_trail FROM PUBLIC;
GRANT SELECT ON mdistinct.audit_trail TO mdistinct_admin;
COMMENT ON TABLE mdistinct.audit_trail IS
    'Calls of the plugin''s functions, as far as they have been moved here; see the view audit';
