-- No state: it calls a function, and so comes and goes with the functions.
CREATE OR REPLACE VIEW mdistinct.audit AS
SELECT
    a.call,
    a.began_at,
    a.ended_at,
    a.login,
    a.role,
    a.client_address,
    a.action,
    a.dataset,
    a.options,
    a.outcome,
    a.sqlstate,
    a.message,
    a.result
FROM mdistinct.audit_trail AS a
UNION ALL
SELECT o.*
FROM mdistinct.open_calls() AS o
WHERE NOT EXISTS (SELECT FROM mdistinct.audit_trail AS a WHERE a.call = o.call);

ALTER VIEW mdistinct.audit OWNER TO mdistinct_owner;
REVOKE ALL ON mdistinct.audit FROM PUBLIC;
GRANT SELECT ON mdistinct.audit TO mdistinct_admin;
COMMENT ON VIEW mdistinct.audit IS
    'Who called what, with which options, and how it ended; failures and running calls too';
COMMENT ON COLUMN mdistinct.audit.call IS 'identifier of the call';
COMMENT ON COLUMN mdistinct.audit.began_at IS 'when it began';
COMMENT ON COLUMN mdistinct.audit.ended_at IS 'when it ended; NULL while it has not';
COMMENT ON COLUMN mdistinct.audit.login IS 'who had logged in';
COMMENT ON COLUMN mdistinct.audit.role IS 'the role in effect';
COMMENT ON COLUMN mdistinct.audit.client_address IS 'where the client was; NULL for a socket';
COMMENT ON COLUMN mdistinct.audit.action IS 'what was called';
COMMENT ON COLUMN mdistinct.audit.dataset IS 'the dataset that it was about';
COMMENT ON COLUMN mdistinct.audit.options IS 'the other arguments';
COMMENT ON COLUMN mdistinct.audit.outcome IS 'succeeded, failed, rolled back, unfinished or running';
COMMENT ON COLUMN mdistinct.audit.sqlstate IS 'SQLSTATE of a failure';
COMMENT ON COLUMN mdistinct.audit.message IS 'its message';
COMMENT ON COLUMN mdistinct.audit.result IS 'figures of what was done';
