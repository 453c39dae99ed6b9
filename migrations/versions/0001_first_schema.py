"""Roles, schemas, catalog tables.

Revision 0001, the first.
"""

from __future__ import annotations

from alembic import op

from pg_mdistinct.install import build, connect

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    build.run_schema(connect.driver_connection(op.get_bind()), revision)


def downgrade() -> None:
    raise NotImplementedError("a history is never taken back")
