"""What version 0.2.0 keeps besides: the trail of what was done by whom.

Revision 0003, after 0002.
"""

from __future__ import annotations

from alembic import op

from pg_mdistinct.install import build, connect

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    build.run_step(connect.driver_connection(op.get_bind()), "0002", revision)


def downgrade() -> None:
    raise NotImplementedError("a history is never taken back")
