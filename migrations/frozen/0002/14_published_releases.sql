CREATE VIEW mdistinct_published.releases AS
SELECT
    r.dataset,
    r.release,
    r.published_at,
    r.m,
    r.variant,
    r.records + r.counterfeits AS rows,
    r.groups,
    r.counterfeits
FROM mdistinct.releases AS r;

REVOKE ALL ON mdistinct_published.releases FROM PUBLIC;
GRANT SELECT ON mdistinct_published.releases TO mdistinct_reader, mdistinct_admin;
COMMENT ON VIEW mdistinct_published.releases IS 'What has been published, and when';
