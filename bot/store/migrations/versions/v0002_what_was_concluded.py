"""Every change of a verdict is kept, so that any past minute can be explained."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "verdicts",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.run_id"), nullable=False),
        sa.Column("check_id", sa.String, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("value", sa.JSON, nullable=False),
    )
    op.create_index("verdicts_by_check", "verdicts", ["run_id", "check_id", "number"])
