-- No state: it calls a function, and so comes and goes with the functions.
CREATE OR REPLACE VIEW mdistinct.schedule AS
SELECT
    s.dataset,
    s.cron,
    r.started_at AS last_run,
    mdistinct.next_run(s.cron, pg_catalog.now()) AS next_run,
    mdistinct.run_status(r.run, r.status) AS status,
    r.message,
    r.release,
    s.scheduled_by
FROM mdistinct.schedules AS s
LEFT JOIN LATERAL (
    SELECT *
    FROM mdistinct.runs AS t
    WHERE t.dataset = s.dataset AND t.started_at >= s.scheduled_at
    ORDER BY t.run DESC
    LIMIT 1
) AS r ON true;

ALTER VIEW mdistinct.schedule OWNER TO mdistinct_owner;
REVOKE ALL ON mdistinct.schedule FROM PUBLIC;
GRANT SELECT ON mdistinct.schedule TO mdistinct_admin;
COMMENT ON VIEW mdistinct.schedule IS
    'Scheduled datasets: when they run, and how the last run ended';
COMMENT ON COLUMN mdistinct.schedule.dataset IS 'the dataset';
COMMENT ON COLUMN mdistinct.schedule.cron IS 'when it is to be published';
COMMENT ON COLUMN mdistinct.schedule.last_run IS 'when the last run since it was scheduled began';
COMMENT ON COLUMN mdistinct.schedule.next_run IS 'when it runs next';
COMMENT ON COLUMN mdistinct.schedule.status IS 'how the last run ended: published, skipped or failed; running while it has not; interrupted where it was killed';
COMMENT ON COLUMN mdistinct.schedule.message IS 'why nothing was published';
COMMENT ON COLUMN mdistinct.schedule.release IS 'the release that came out';
COMMENT ON COLUMN mdistinct.schedule.scheduled_by IS 'who scheduled it';
