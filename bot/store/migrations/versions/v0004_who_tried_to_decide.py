"""The audit log keeps apart why somebody was refused, which plan it was about, and where the message stands."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("why", "digest", "link"):
        op.add_column("audit", sa.Column(name, sa.Text, nullable=False, server_default=""))
