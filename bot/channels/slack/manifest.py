"""The app that Hero needs in a workspace, with exactly the scopes and events it uses; ``hero init`` prints it.

Source: Slack, "App manifest reference" (September 2025).
"""

from typing import Any

NEEDED_SCOPES: frozenset[str] = frozenset(
    {
        "app_mentions:read",
        "channels:history",
        "channels:read",
        "chat:write",
        "commands",
        "groups:history",
        "groups:read",
        "users:read",
    }
)
"""What the bot token must hold; ``groups:*`` is the same as ``channels:*`` for a private channel."""

FILES_SCOPE = "files:write"
"""For pictures of a run; without it Hero does everything else, and says in ``hero doctor`` what would be better."""

EVENTS: tuple[str, ...] = ("app_mention", "message.channels", "message.groups")


def slack_manifest(request_url: str | None = None) -> dict[str, Any]:
    """The manifest to create the app from.

    Args:
        request_url: for ``mode = "http"``: the public address of ``/slack/events``. None makes it a Socket Mode app.
    """
    where = {"request_url": request_url} if request_url else {}
    command = {
        "command": "/hero",
        "description": "Ask about training runs and what Hero does",
        "usage_hint": "status | runs | incidents | help",
        "should_escape": False,
    }
    return {
        "display_information": {
            "name": "Hero",
            "description": "Watches training runs, and relaunches them only on the word of who is responsible",
        },
        "features": {
            "bot_user": {"display_name": "hero", "always_online": True},
            "slash_commands": [command | ({"url": request_url} if request_url else {})],
        },
        "oauth_config": {"scopes": {"bot": sorted({*NEEDED_SCOPES, FILES_SCOPE})}},
        "settings": {
            "event_subscriptions": {"bot_events": list(EVENTS)} | where,
            "interactivity": {"is_enabled": True} | where,
            "org_deploy_enabled": False,
            "socket_mode_enabled": request_url is None,
            "token_rotation_enabled": False,
        },
    }
