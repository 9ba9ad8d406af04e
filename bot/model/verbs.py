"""The words that begin a command, wherever it is given; ``handlers/command.py`` says what each answers."""

VERBS = frozenset(
    {
        *("status", "runs", "catchup", "incidents", "explain", "plot", "milestone", "checks", "log", "audit", "help"),
        *("ack", "silence", "pause", "resume", "watch"),
        *("plan", "launch", "relaunch", "stop", "cleanup", "seal", "rollback", "trial"),
        *("allow", "revoke", "handoff"),
    }
)
