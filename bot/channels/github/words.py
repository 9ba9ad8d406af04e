"""The text of the house for new issues, from the file that ``[github] issue_template`` names."""

from pathlib import Path

from bot.errors import ConfigurationError
from bot.render.issue_template import OWN_TEMPLATE, IssueTemplate, parse_template

_MOST_BYTES = 200_000


def load_template(path: Path | None) -> IssueTemplate:
    """Read the file; Hero's own text when there is none.

    Raises:
        ConfigurationError: it cannot be read or used; says the fix.
    """
    if path is None:
        return OWN_TEMPLATE
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES).decode()
        return parse_template(text)
    except OSError as error:
        detail = f"cannot be read ({error.strerror or type(error).__name__})"
    except UnicodeDecodeError:
        detail = "is no UTF-8 text"
    except ValueError as error:
        detail = str(error)
    raise ConfigurationError((f"[github] issue_template {path}: {detail}",))
