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
