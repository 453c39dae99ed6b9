CREATE TABLE mdistinct.updates (
    dataset name NOT NULL REFERENCES mdistinct.datasets ON DELETE CASCADE,
    old_value text COLLATE "C" NOT NULL,
    new_value text COLLATE "C" NOT NULL,
    probability double precision NOT NULL CHECK (probability >= 0 AND probability <= 1),
    PRIMARY KEY (dataset, old_value, new_value)
);

REVOKE ALL ON mdistinct.updates FROM PUBLIC;
GRANT SELECT ON mdistinct.updates TO mdistinct_admin;
COMMENT ON TABLE mdistinct.updates IS
    'The update model: what a sensitive value may become by the next release, and how likely';
