-- Sessions tell by their application_name, which everybody may see, how far a publication is:
-- phase and share, no dataset and no count.
CREATE VIEW mdistinct.progress AS
SELECT
    a.pid,
    (pg_catalog.regexp_match(a.application_name, '^mdistinct: (.*) \d+%$'))[1] AS phase,
    pg_catalog.substring(a.application_name, '(\d+)%$')::integer / 100.0 AS share
FROM pg_catalog.pg_stat_activity AS a
WHERE a.datname = pg_catalog.current_database()
    AND a.application_name ~ '^mdistinct: [a-z -]+ \d{1,3}%$';

REVOKE ALL ON mdistinct.progress FROM PUBLIC;
GRANT SELECT ON mdistinct.progress TO mdistinct_publisher, mdistinct_admin;
COMMENT ON VIEW mdistinct.progress IS
    'Publications, attacks and verifications that have been running for a while: in which phase, and how much of it is done';
