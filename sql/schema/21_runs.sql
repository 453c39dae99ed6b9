-- No reference to the datasets: the trail outlives them. Nobody but the owner may write here; the
-- functions add a row when a run begins, and complete it once, when it ends.
CREATE TABLE mdistinct.runs (
    run bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dataset name NOT NULL,
    run_by name NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    status text NOT NULL
        CHECK (status IN ('running', 'published', 'skipped', 'failed', 'interrupted')),
    release integer,
    sqlstate text,
    message text,
    hint text,
    CHECK ((status = 'published') = (release IS NOT NULL)),
    CHECK ((status IN ('skipped', 'failed')) = (sqlstate IS NOT NULL)),
    CHECK ((status IN ('running', 'interrupted')) = (ended_at IS NULL))
);

CREATE INDEX ON mdistinct.runs (dataset, run DESC);
CREATE INDEX ON mdistinct.runs (run) WHERE status = 'running';

REVOKE ALL ON mdistinct.runs FROM PUBLIC;
GRANT SELECT ON mdistinct.runs TO mdistinct_admin;
COMMENT ON TABLE mdistinct.runs IS
    'Every run of a schedule or of mdistinct_publish_all, and how it ended';
