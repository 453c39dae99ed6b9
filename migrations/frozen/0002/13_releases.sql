CREATE TABLE mdistinct.releases (
    dataset name NOT NULL REFERENCES mdistinct.datasets ON DELETE CASCADE,
    release integer NOT NULL CHECK (release > 0),
    published_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now(),
    m integer NOT NULL,
    variant text NOT NULL,
    records integer NOT NULL,
    groups integer NOT NULL,
    counterfeits integer NOT NULL,
    withheld integer NOT NULL,
    ncp double precision NOT NULL,
    max_risk double precision,
    seconds double precision NOT NULL,
    PRIMARY KEY (dataset, release)
);

REVOKE ALL ON mdistinct.releases FROM PUBLIC;
GRANT SELECT ON mdistinct.releases TO mdistinct_admin;
COMMENT ON TABLE mdistinct.releases IS 'Every publication and its figures';
