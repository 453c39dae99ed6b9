-- The row that a publication returns, in the contract's column order.
CREATE TYPE mdistinct.publication AS (
    dataset name,
    release integer,
    records integer,
    groups integer,
    counterfeits integer,
    withheld integer,
    ncp double precision,
    max_risk double precision,
    seconds double precision
);

REVOKE ALL ON TYPE mdistinct.publication FROM PUBLIC;
COMMENT ON TYPE mdistinct.publication IS 'What mdistinct_publish and mdistinct_preview return';
