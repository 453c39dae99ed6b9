"""The scheduler's role, schedules, and the trail of runs.

Revision 0002, after 0001.
"""

from __future__ import annotations

from alembic import op

from pg_mdistinct.install import build, connect

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    build.run_step(connect.driver_connection(op.get_bind()), "0001", revision)


def downgrade() -> None:
    raise NotImplementedError("a history is never taken back")
