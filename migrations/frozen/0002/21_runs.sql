-- No reference to the datasets: the trail outlives them. Nobody but the owner may write here, and
-- the functions only ever add rows.
CREATE TABLE mdistinct.runs (
    run bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dataset name NOT NULL,
    run_by name NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    status text NOT NULL CHECK (status IN ('published', 'skipped', 'failed')),
    release integer,
    sqlstate text,
    message text,
    hint text,
    CHECK ((status = 'published') = (release IS NOT NULL)),
    CHECK ((status = 'published') = (sqlstate IS NULL))
);

CREATE INDEX ON mdistinct.runs (dataset, run DESC);

REVOKE ALL ON mdistinct.runs FROM PUBLIC;
GRANT SELECT ON mdistinct.runs TO mdistinct_admin;
COMMENT ON TABLE mdistinct.runs IS
    'Every run of a schedule or of mdistinct_publish_all, and how it ended';
