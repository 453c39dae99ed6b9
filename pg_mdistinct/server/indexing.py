"""Indexes on the ranges and sets of releases, for those who ask narrow questions of large ones.

One GiST index has all ranges of a release: questions about several columns find their few groups at
once. It is made on demand, for it takes longer to build than most of what a publication does.
"""

from __future__ import annotations

from pg_mdistinct.server import catalog, relations
from pg_mdistinct.server.audit import audited
from pg_mdistinct.server.errors import entry_point
from pg_mdistinct.server.plpython import Plpy, run

MOST_COLUMNS = 32
"""PostgreSQL's limit for an index; groups that 32 columns leave are few."""

# The partitions of the table of groups that have no such index, with the columns of each; not the
# one that waits for the next release, which is written faster without.
_MISSING = """
    SELECT n.nspname AS schema, c.relname AS name,
        pg_catalog.array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE t.typtype = 'r')
            AS ranges,
        pg_catalog.array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE t.typtype <> 'r')
            AS sets
    FROM pg_catalog.pg_inherits AS i
    JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname ~ '^q[0-9]+$'
    JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
    WHERE i.inhparent = pg_catalog.to_regclass($1)
        AND c.oid IS DISTINCT FROM pg_catalog.to_regclass($2)
        AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_index AS x
        JOIN pg_catalog.pg_class AS k ON k.oid = x.indexrelid
        JOIN pg_catalog.pg_am AS m ON m.oid = k.relam
        WHERE x.indrelid = c.oid AND m.amname IN ('gist', 'gin')
    )
    GROUP BY c.oid, n.nspname, c.relname
    ORDER BY c.oid
"""


@entry_point
@audited("index", writes=True)
def index(plpy: Plpy, dataset: str) -> int:
    """Index all releases that are not, and return how many that were."""
    found = catalog.find(plpy, dataset)
    groups = relations.relations_of(plpy, found.name).groups
    coming = relations.partition_of(plpy, found.name, "groups", found.last_release + 1)
    missing = run(plpy, _MISSING, ["text", "text"], [groups, coming])
    for row in missing:
        table = relations.qualified(plpy, row["schema"], row["name"])
        if row["ranges"]:
            ranges = ", ".join(row["ranges"][:MOST_COLUMNS])
            plpy.execute(f"CREATE INDEX ON {table} USING gist ({ranges})")
        for column in row["sets"] or ():
            plpy.execute(f"CREATE INDEX ON {table} USING gin ({column})")
        # The planner would not know how few groups a narrow range meets.
        plpy.execute(f"ANALYZE {table}")
    return len(missing)
