"""${message}."""

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """There is no way back but the copy of the file that is made before each upgrade."""
    msg = "the store is not downgraded; put the copy back that was made before the upgrade"
    raise NotImplementedError(msg)
