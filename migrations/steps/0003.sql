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

-- Versions and placement have a thousand versions a row, and the latest release is kept packed.
-- Nothing is kept of it yet: the next publication finds that out and goes through the history once.
DO $do$
DECLARE
    of_extension boolean := EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_mdistinct');
    name name;
    versions text;
    placement text;
    membership text;
    own record;
BEGIN
    FOR name IN SELECT d.dataset FROM mdistinct.datasets AS d LOOP
        versions := pg_catalog.format('mdistinct_data.%I', name || '_versions');
        placement := pg_catalog.format('mdistinct_data.%I', name || '_placement');
        membership := pg_catalog.format('mdistinct.%I', name || '_membership');
        EXECUTE pg_catalog.format(
            'ALTER TABLE %s ADD COLUMN first integer, ADD COLUMN gids integer[],'
            ' ALTER COLUMN seq DROP NOT NULL, ALTER COLUMN gid DROP NOT NULL', placement);
        EXECUTE pg_catalog.format('ALTER TABLE %s ALTER COLUMN gids SET STORAGE EXTERNAL', placement);
        EXECUTE pg_catalog.format(
            'INSERT INTO %1$s (release, first, gids)'
            ' SELECT release, seq / 1000 * 1000, pg_catalog.array_agg(gid ORDER BY seq) FROM %1$s'
            ' GROUP BY release, seq / 1000', placement);
        EXECUTE pg_catalog.format('DELETE FROM %s WHERE gids IS NULL', placement);

        -- The columns of versions become arrays of the same names.
        SELECT pg_catalog.string_agg(
                pg_catalog.format('ADD COLUMN %s_all %s[]%s, ', a.attname,
                    pg_catalog.format_type(a.atttypid, -1),
                    CASE WHEN a.atttypid = 'text'::pg_catalog.regtype THEN ' COLLATE "C"' END),
                '' ORDER BY a.attnum) AS added,
            pg_catalog.string_agg(
                pg_catalog.format('ALTER COLUMN %s_all SET STORAGE EXTERNAL, ', a.attname),
                '' ORDER BY a.attnum) AS uncompressed,
            pg_catalog.string_agg(a.attname || '_all, ', '' ORDER BY a.attnum) AS names,
            pg_catalog.string_agg(
                pg_catalog.format('pg_catalog.array_agg(v.%s ORDER BY v.seq), ', a.attname),
                '' ORDER BY a.attnum) AS gathered,
            pg_catalog.array_agg(a.attname ORDER BY a.attnum) AS kept
        INTO own
        FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = versions::pg_catalog.regclass AND NOT a.attisdropped
            AND (a.attname = 'record_id' OR a.attname ~ '^q[0-9]+$');
        EXECUTE pg_catalog.format(
            'ALTER TABLE %s ADD COLUMN first integer, %s ADD COLUMN label text[] COLLATE "C"',
            versions, own.added);
        EXECUTE pg_catalog.format(
            'ALTER TABLE %s %s ALTER COLUMN label SET STORAGE EXTERNAL', versions, own.uncompressed);
        EXECUTE pg_catalog.format(
            'INSERT INTO %1$s (release, first, %2$s label) SELECT v.release, v.seq / 1000 * 1000, %3$s'
            ' pg_catalog.array_agg(d.label ORDER BY v.seq) FROM %1$s AS v'
            ' JOIN %4$s AS d ON d.code = v.value GROUP BY v.release, v.seq / 1000',
            versions, own.names, own.gathered,
            pg_catalog.format('mdistinct_data.%I', name || '_domain'));
        EXECUTE pg_catalog.format('DELETE FROM %s WHERE first IS NULL', versions);

        -- A script of an extension may replace nothing but what belongs to the extension.
        IF of_extension THEN
            EXECUTE pg_catalog.format('ALTER EXTENSION pg_mdistinct ADD VIEW %s', membership);
        END IF;
        EXECUTE pg_catalog.format(
            'CREATE OR REPLACE VIEW %1$s AS SELECT p.release, p.record_id, p.gid'
            ' FROM (SELECT v.release, m.* FROM %2$s AS v JOIN %3$s AS p'
            ' ON p.release = v.release AND p.first = v.first CROSS JOIN LATERAL'
            ' ROWS FROM (pg_catalog.unnest(p.gids), pg_catalog.unnest(v.record_id_all))'
            ' AS m (gid, record_id)) AS p', membership, versions, placement);
        IF of_extension THEN
            EXECUTE pg_catalog.format('ALTER EXTENSION pg_mdistinct DROP VIEW %s', membership);
        END IF;
        EXECUTE pg_catalog.format(
            'ALTER TABLE %s DROP COLUMN seq, DROP COLUMN gid,'
            ' ALTER COLUMN first SET NOT NULL, ALTER COLUMN gids SET NOT NULL', placement);
        EXECUTE pg_catalog.format(
            'ALTER TABLE %s DROP COLUMN seq, DROP COLUMN value, ALTER COLUMN first SET NOT NULL,'
            ' ALTER COLUMN record_id_all SET NOT NULL, ALTER COLUMN label SET NOT NULL', versions);
        FOR i IN 1 .. pg_catalog.cardinality(own.kept) LOOP
            EXECUTE pg_catalog.format('ALTER TABLE %s DROP COLUMN %s', versions, own.kept[i]);
            EXECUTE pg_catalog.format('ALTER TABLE %s RENAME COLUMN %s_all TO %2$s', versions, own.kept[i]);
        END LOOP;
        EXECUTE pg_catalog.format('CREATE INDEX ON mdistinct_data.%I (risk)', name || '_absent');
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

-- Its columns are others now; functions are made anew after this.
DROP FUNCTION IF EXISTS mdistinct.risk_arrays(name, integer);

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

-- The function that reads the source gives arrays of its columns, a thousand rows at a time. What it
-- gives is taken from our own tables, since admins may make such functions; one that is not what
-- mdistinct_register has made is left alone, and the next publication refuses it.
DO $do$
DECLARE
    of_extension boolean := EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_mdistinct');
    reader text;
    body text;
    owner name;
    names text;
    result text;
    gathered text;
BEGIN
    -- The body is the source's owner's business: it is looked at when he runs it.
    PERFORM pg_catalog.set_config('check_function_bodies', 'off', true);
    FOR reader, body, owner, names, result, gathered IN
        SELECT pg_catalog.format('mdistinct_sources.%I()', d.dataset), p.prosrc,
            pg_catalog.pg_get_userbyid(p.proowner), t.names, t.result, t.gathered
        FROM mdistinct.datasets AS d
        JOIN pg_catalog.pg_proc AS p ON p.proname = d.dataset AND p.pronargs = 0
        CROSS JOIN LATERAL (
            SELECT pg_catalog.string_agg(n.name, ', ' ORDER BY n.number) AS names,
                pg_catalog.string_agg(n.name || ' ' || n.type, ', ' ORDER BY n.number) AS result,
                pg_catalog.string_agg(
                    CASE n.type WHEN 'numeric[]' THEN 'pg_catalog.array_agg(pg_catalog.trim_scale(s.' || n.name || '))'
                    ELSE 'pg_catalog.array_agg(s.' || n.name || ')' END,
                    ', ' ORDER BY n.number) AS gathered,
                pg_catalog.array_agg(
                    CASE n.name WHEN 'label' THEN 'sensitive' ELSE n.name END ORDER BY n.number) AS former,
                pg_catalog.array_agg(n.element ORDER BY n.number) AS elements
            FROM (
                SELECT a.attname::text AS name, pg_catalog.format_type(a.atttypid, -1) AS type,
                    e.typelem AS element,
                    CASE a.attname WHEN 'record_id' THEN 0 WHEN 'label' THEN 10000
                    ELSE pg_catalog.substr(a.attname, 2)::integer END AS number
                FROM pg_catalog.pg_attribute AS a
                JOIN pg_catalog.pg_type AS e ON e.oid = a.atttypid
                WHERE a.attrelid = pg_catalog.format('mdistinct_data.%I', d.dataset || '_versions')::regclass
                    AND NOT a.attisdropped AND a.attname ~ '^(record_id|q[0-9]+|label)$'
            ) AS n
        ) AS t
        WHERE p.pronamespace = 'mdistinct_sources'::regnamespace AND p.prosecdef AND p.prokind = 'f'
            AND p.prolang = (SELECT l.oid FROM pg_catalog.pg_language AS l WHERE l.lanname = 'sql')
            AND p.proargnames = t.former AND p.proallargtypes = t.elements
    LOOP
        EXECUTE pg_catalog.format('DROP FUNCTION %s', reader);
        EXECUTE pg_catalog.format(
            'CREATE FUNCTION %s RETURNS TABLE (%s) STABLE LANGUAGE sql PARALLEL UNSAFE'
            ' SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET datestyle = ''ISO, YMD'''
            ' SET intervalstyle = postgres SET timezone = ''UTC'' SET extra_float_digits = 1'
            ' SET bytea_output = hex SET lc_monetary = ''C'' SET row_security = off'
            ' SET client_min_messages = error AS %L',
            reader, result,
            pg_catalog.format(
                'SELECT %s FROM (SELECT (pg_catalog.row_number() OVER () - 1) / 1000 AS part, s.*'
                ' FROM (%s) AS s (%s)) AS s GROUP BY s.part', gathered, body, names));
        IF of_extension THEN
            EXECUTE pg_catalog.format('ALTER EXTENSION pg_mdistinct DROP FUNCTION %s', reader);
        END IF;
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', reader);
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO mdistinct_owner', reader);
        EXECUTE pg_catalog.format('ALTER FUNCTION %s OWNER TO %I', reader, owner);
    END LOOP;
END
$do$;
