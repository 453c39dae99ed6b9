"""${message}.

Revision ${up_revision}, after ${down_revision | comma,n}.
"""

from __future__ import annotations

from alembic import op

from pg_mdistinct.install import build, connect

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    driver = connect.driver_connection(op.get_bind())
    ${upgrades if upgrades else "build.run_step(driver, down_revision, revision)"}


def downgrade() -> None:
    raise NotImplementedError("a history is never taken back")
