-- From revision 0002 to 0003: what changes in tables that exist already.

-- A run is written down when it begins, so that one that is killed leaves a trace.
GRANT pg_read_all_settings TO mdistinct_owner;
ALTER TABLE mdistinct.runs
    ALTER COLUMN ended_at DROP NOT NULL,
    DROP CONSTRAINT runs_status_check,
    DROP CONSTRAINT runs_check1,
    ADD CONSTRAINT runs_status_check
        CHECK (status IN ('running', 'published', 'skipped', 'failed', 'interrupted')),
    ADD CONSTRAINT runs_check1
        CHECK ((status IN ('skipped', 'failed')) = (sqlstate IS NOT NULL)),
    ADD CONSTRAINT runs_check2
        CHECK ((status IN ('running', 'interrupted')) = (ended_at IS NULL));
CREATE INDEX ON mdistinct.runs (run) WHERE status = 'running';

-- Nothing is for PUBLIC, and readers' own functions see no more than the views show.
REVOKE ALL ON TYPE mdistinct.publication FROM PUBLIC;
DO $do$
DECLARE
    shown regclass;
    reader regprocedure;
BEGIN
    FOR shown IN
        SELECT c.oid
        FROM mdistinct.datasets AS d
        JOIN pg_catalog.pg_class AS c ON c.relname IN (d.dataset, d.dataset || '_counterfeits')
        WHERE c.relnamespace = 'mdistinct_published'::regnamespace AND c.relkind = 'v'
    LOOP
        EXECUTE pg_catalog.format('ALTER VIEW %s SET (security_barrier)', shown);
    END LOOP;
    FOR reader IN
        SELECT p.oid
        FROM mdistinct.datasets AS d
        JOIN pg_catalog.pg_proc AS p ON p.proname = d.dataset
        WHERE p.pronamespace = 'mdistinct_sources'::regnamespace
    LOOP
        EXECUTE pg_catalog.format('ALTER ROUTINE %s SET row_security = off', reader);
        EXECUTE pg_catalog.format('ALTER ROUTINE %s SET client_min_messages = error', reader);
    END LOOP;
END
$do$;

-- The placement has a few hundred versions a row, and the latest release is kept packed. Nothing is
-- kept of it yet: the next publication finds that out and goes through the history once.
DO $do$
DECLARE
    of_extension boolean := EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_mdistinct');
    name name;
    placement text;
    membership text;
BEGIN
    FOR name IN SELECT d.dataset FROM mdistinct.datasets AS d LOOP
        placement := pg_catalog.format('mdistinct_data.%I', name || '_placement');
        membership := pg_catalog.format('mdistinct.%I', name || '_membership');
        EXECUTE pg_catalog.format(
            'ALTER TABLE %s ADD COLUMN first integer, ADD COLUMN gids integer[],'
            ' ALTER COLUMN seq DROP NOT NULL, ALTER COLUMN gid DROP NOT NULL', placement);
        EXECUTE pg_catalog.format(
            'INSERT INTO %1$s (release, first, gids)'
            ' SELECT release, seq / 400 * 400, pg_catalog.array_agg(gid ORDER BY seq) FROM %1$s'
            ' GROUP BY release, seq / 400', placement);
        EXECUTE pg_catalog.format('DELETE FROM %s WHERE gids IS NULL', placement);
        -- A script of an extension may replace nothing but what belongs to the extension.
        IF of_extension THEN
            EXECUTE pg_catalog.format('ALTER EXTENSION pg_mdistinct ADD VIEW %s', membership);
        END IF;
        EXECUTE pg_catalog.format(
            'CREATE OR REPLACE VIEW %1$s AS SELECT v.release, v.record_id, p.gid FROM %2$s AS v'
            ' JOIN (SELECT c.release, c.first + (m.number - 1)::integer AS seq, m.gid'
            ' FROM %3$s AS c CROSS JOIN LATERAL'
            ' pg_catalog.unnest(c.gids) WITH ORDINALITY AS m (gid, number)) AS p'
            ' ON p.release = v.release AND p.seq = v.seq',
            membership, pg_catalog.format('mdistinct_data.%I', name || '_versions'), placement);
        IF of_extension THEN
            EXECUTE pg_catalog.format('ALTER EXTENSION pg_mdistinct DROP VIEW %s', membership);
        END IF;
        EXECUTE pg_catalog.format(
            'ALTER TABLE %s DROP COLUMN seq, DROP COLUMN gid,'
            ' ALTER COLUMN first SET NOT NULL, ALTER COLUMN gids SET NOT NULL', placement);
        EXECUTE pg_catalog.format('DELETE FROM mdistinct_data.%I', name || '_knowledge');
        EXECUTE pg_catalog.format(
            'ALTER TABLE mdistinct_data.%I'
            ' ADD COLUMN record_ids bytea NOT NULL, ADD COLUMN gid bytea NOT NULL,'
            ' ADD COLUMN value bytea NOT NULL, ADD COLUMN group_sizes bytea NOT NULL,'
            ' ADD COLUMN group_values bytea NOT NULL, ADD COLUMN state bytea NOT NULL',
            name || '_knowledge');
        EXECUTE pg_catalog.format(
            'ALTER TABLE mdistinct_data.%I'
            ' ALTER COLUMN model SET STORAGE EXTERNAL, ALTER COLUMN record_ids SET STORAGE EXTERNAL,'
            ' ALTER COLUMN gid SET STORAGE EXTERNAL, ALTER COLUMN value SET STORAGE EXTERNAL,'
            ' ALTER COLUMN group_sizes SET STORAGE EXTERNAL,'
            ' ALTER COLUMN group_values SET STORAGE EXTERNAL,'
            ' ALTER COLUMN state SET STORAGE EXTERNAL, ALTER COLUMN candidates SET STORAGE EXTERNAL,'
            ' ALTER COLUMN kept SET STORAGE EXTERNAL', name || '_knowledge');
    END LOOP;
END
$do$;

-- Groups have an index for each release, made when all of them are written.
DO $do$
DECLARE
    groups regclass;
    release regclass;
BEGIN
    FOR groups IN
        SELECT c.oid
        FROM mdistinct.datasets AS d
        JOIN pg_catalog.pg_class AS c ON c.relname = d.dataset || '_groups'
        WHERE c.relnamespace = 'mdistinct_data'::regnamespace
    LOOP
        EXECUTE (
            SELECT pg_catalog.format('ALTER TABLE %s DROP CONSTRAINT %I', groups, k.conname)
            FROM pg_catalog.pg_constraint AS k
            WHERE k.conrelid = groups AND k.contype = 'p'
        );
        FOR release IN SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = groups LOOP
            EXECUTE pg_catalog.format('CREATE UNIQUE INDEX ON %s (gid)', release);
        END LOOP;
    END LOOP;
END
$do$;

-- A third variant, under which values never change.
ALTER TABLE mdistinct.datasets
    DROP CONSTRAINT datasets_variant_check,
    ADD CONSTRAINT datasets_variant_check
        CHECK (variant IN ('m-distinct', 'm-distinct*', 'm-invariance'));

-- A third function for each dataset, which locks the source before it is checked and read.
DO $do$
DECLARE
    of_extension boolean := EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_mdistinct');
    reader text;
    place text;
    owner name;
BEGIN
    FOR reader, place, owner IN
        SELECT pg_catalog.format('mdistinct_sources.%I', d.dataset),
            pg_catalog.format('%I.%I', d.source_schema, d.source_table),
            pg_catalog.pg_get_userbyid(p.proowner)
        FROM mdistinct.datasets AS d
        JOIN pg_catalog.pg_proc AS p ON p.proname = d.dataset AND p.pronargs = 0
        WHERE p.pronamespace = 'mdistinct_sources'::regnamespace
    LOOP
        EXECUTE pg_catalog.format(
            'CREATE FUNCTION %s(boolean) RETURNS oid VOLATILE LANGUAGE sql PARALLEL UNSAFE'
            ' SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET datestyle = ''ISO, YMD'''
            ' SET intervalstyle = postgres SET timezone = ''UTC'' SET extra_float_digits = 1'
            ' SET bytea_output = hex SET lc_monetary = ''C'' SET row_security = off'
            ' SET client_min_messages = error AS %L',
            reader,
            pg_catalog.format(
                'PREPARE mdistinct_source AS SELECT FROM %s; DEALLOCATE mdistinct_source;'
                ' SELECT pg_catalog.to_regclass(%L)::pg_catalog.oid', place, place));
        IF of_extension THEN
            EXECUTE pg_catalog.format('ALTER EXTENSION pg_mdistinct DROP FUNCTION %s(boolean)', reader);
        END IF;
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s(boolean) FROM PUBLIC', reader);
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s(boolean) TO mdistinct_owner', reader);
        EXECUTE pg_catalog.format('ALTER FUNCTION %s(boolean) OWNER TO %I', reader, owner);
    END LOOP;
END
$do$;
