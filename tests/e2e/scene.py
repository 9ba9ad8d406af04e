"""Everything around one Hero: people on Slack and GitHub, a run on the real Iris cluster, and what all of them see.

async with Scene(tmp_path, iris_cluster, "story") as scene:
    scene.launch()
    scene.hero.start()
    await scene.asked()
    await scene.says(DRI, "approve R1")
"""

import json
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.e2e.hero import Hero, to_toml
from tests.fakes.github import FakeGitHub, Stall
from tests.fakes.github_world import Comment
from tests.fakes.iris_cluster import IrisCluster
from tests.fakes.slack import FakeSlack
from tests.fakes.slack_values import Post, Said

CHANNEL = "C1"
DRI = "UDANA"
OTHER = "UOMAR"
DRI_LOGIN = "dana-gh"
OTHER_LOGIN = "omar-gh"
PEOPLE = {
    "people.dana": {"slack": f'"{DRI}"', "github": f'"{DRI_LOGIN}"'},
    "people.omar": {"slack": f'"{OTHER}"', "github": f'"{OTHER_LOGIN}"'},
}
STEPS = 60
HARM_AT = 35
"""The trainer's first life ends before this step; its newest checkpoint is then that of step 30."""
RESUMED_FROM = 30
WANDB_KEY = "0123456789abcdef0123456789abcdef01234567"
"""Stands in the contract's command, as it does in the runbooks."""
TRAINER = "e2e_trainer.py"


class Scene:
    """One run, one Hero, one Slack, one GitHub."""

    def __init__(
        self, directory: Path, cluster: IrisCluster, run_id: str, *, submit_with: Sequence[str | Path] | None = None
    ) -> None:
        """Write Hero's configuration and the run's contract once entered.

        Args:
            directory: for Hero.
            cluster: where the run is.
            run_id: also the job's name; unique in the cluster.
            submit_with: the program that the contract's command calls; by default the real ``iris``, and nothing else.
        """
        self.cluster = cluster
        self.run_id = run_id
        self.job_id = f"/me/{run_id}"
        self.home = cluster.work / run_id
        self.slack = FakeSlack()
        self.github = FakeGitHub()
        self._directory = directory
        self._submit_with = (*(submit_with or (cluster.cli,)), "--controller-url", cluster.url)
        self.hero: Hero

    async def __aenter__(self) -> Self:
        (self.cluster.work / TRAINER).write_text(Path(__file__).with_name("trainer.py").read_text())
        await self.slack.start()
        self.github.start()
        self.slack.add_channel(CHANNEL, "runs")
        self.slack.add_user(DRI, "Dana")
        self.slack.add_user(OTHER, "Omar")
        self.slack.allow_mentions(f"<@{DRI}>")
        self.github.add_user(DRI_LOGIN, permission="write")
        self.github.add_user(OTHER_LOGIN, permission="write")
        self.hero = Hero(self._directory, self.sections(), self.secrets | self.cluster.env)
        self.hero.write_contract(self.run_id, self.contract())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not getattr(error, "__notes__", ()):
            error.add_note(self.hero.last_words())
        self.hero.kill()
        self.github.stop()
        await self.slack.__aexit__(kind, error, trace)
        with suppress(OSError):  # a test may have ended the cluster, and its jobs with it
            if self.cluster.state(self.job_id) in {"PENDING", "BUILDING", "RUNNING"}:
                self.cluster.rpc("TerminateJob", {"jobId": self.job_id})

    @property
    def secrets(self) -> dict[str, str]:
        return {
            "HERO_SLACK__BOT_TOKEN": self.slack.bot_token,
            "HERO_SLACK__APP_TOKEN": self.slack.app_token,
            "HERO_GITHUB__TOKEN": self.github.token,
        }

    def sections(self) -> dict[str, dict[str, str]]:
        """Return Hero's configuration, but for what every Hero of the tests has."""
        return {
            "slack": {
                "channel": f'"{CHANNEL}"',
                "base_url": f'"{self.slack.base_url}"',
                "catch_up": '"1s"',
                "deadline": '"5s"',
            },
            "github": {
                "repository": f'"{self.github.repository}"',
                "base_url": f'"{self.github.url}"',
                "poll": '"0.5s"',
                "deadline": '"5s"',
            },
            "iris": {
                "controller_url": f'"{self.cluster.url}"',
                "cli": json.dumps(shlex.join([str(self.cluster.cli)])),
                "deadline": '"10s"',
                "submit_deadline": '"20s"',
                "client_age_warning": '"9999d"',
            },
            **PEOPLE,
        }

    def contract(self) -> str:
        """Return the run's contract, as its owner would write it."""
        command = [
            *map(str, self._submit_with),
            *("job", "run", "--no-wait", "--no-sync", "--user", "me", "--job-name", self.run_id),
            *("-e", "WANDB_API_KEY", WANDB_KEY),
            *("--", "python", TRAINER, self.run_id, str(STEPS)),
        ]
        top = {
            "dri": '"dana"',
            "command": json.dumps(command),
            "checkout": json.dumps(str(self.cluster.work)),
            "output_root": json.dumps(str(self.home)),
            "final_step": str(STEPS),
        }
        tables = {
            "orchestrator": {"kind": '"iris"', "job_id": f'"{self.job_id}"'},
            "cadence": {"check": '"1s"', "after_submit": '"1s"', "stabilise": '"1s"'},
        }
        return "\n".join(f"{key} = {value}" for key, value in top.items()) + "\n\n" + to_toml(tables)

    # The run

    def launch(self) -> None:
        """Launch the run's first life, as its owner did; it trains up to ``HARM_AT`` and waits there."""
        self.cluster.launch(self.job_id, "python", TRAINER, self.run_id, str(STEPS), str(HARM_AT))

    def let(self, what: str, words: str = "") -> None:
        """Let the trainer go on: ``harm``, ``hang`` or ``finish``; or ``forget`` something. See ``trainer.py``."""
        self.home.mkdir(exist_ok=True)
        draft = self.home / f"{what}.draft"
        draft.write_text(words)
        draft.rename(self.home / what)

    @property
    def lives(self) -> int:
        """How many times a trainer of this run was started."""
        file = self.home / "lives"
        return len(file.read_text().splitlines()) if file.exists() else 0

    @property
    def submissions(self) -> tuple[int, ...]:
        """The process of each time that the contract's command was run, where ``submit.sh`` is part of it."""
        file = self.cluster.work / f"{self.run_id}.submissions"
        return tuple(map(int, file.read_text().split())) if file.exists() else ()

    @contextmanager
    def submitting(self, how: str) -> Iterator[None]:
        """Make submissions ``slow`` or ``late``; see ``submit.sh`` and ``quick_iris.py``."""
        file = self.cluster.work / f"{self.run_id}.{how}"
        file.touch()
        try:
            yield
        finally:
            file.unlink()

    def listed(self) -> list[dict[str, Any]]:
        """The jobs of this run, as the controller lists them."""
        answer = self.cluster.rpc("ListJobs", {"query": {"jobIdPrefix": self.job_id, "limit": 50}})
        return [job for job in answer.get("jobs", []) if job["jobId"] == self.job_id]

    # The people

    @property
    def posts(self) -> list[Post]:
        return self.slack.own_messages(CHANNEL)

    @property
    def root(self) -> str:
        """The thread of the run."""
        replied_to = {post.thread_ts for post in self.posts if post.thread_ts}
        first = next(post.ts for post in self.posts if self.run_id in post.shown)
        assert replied_to <= {first}, "one thread a run"
        return first

    def said_on_slack(self, words: str) -> list[Post]:
        return [post for post in self.posts if words in post.shown]

    @property
    def issue(self) -> int:
        (issue,) = self.github.issues()
        return issue.number

    @property
    def own_comments(self) -> list[Comment]:
        """What Hero has said on the run's issue, as it stands now."""
        return [each for issue in self.github.issues() for each in issue.comments if each.author == "hero-bot"]

    @property
    def comments(self) -> list[str]:
        return [comment.body for comment in self.own_comments]

    def said_on_github(self, words: str) -> list[str]:
        return [body for body in self.comments if words in body]

    async def told(self, *words: str, within_s: float = 30.0) -> None:
        """Wait until both Slack and GitHub have been told of it."""
        for word in words:
            await self.hero.until(lambda word=word: self.said_on_slack(word), within_s, f"Slack is told {word!r}")
            await self.hero.until(lambda word=word: self.said_on_github(word), within_s, f"GitHub is told {word!r}")

    async def says(self, user: str, text: str) -> Said:
        """Somebody types into the run's thread."""
        return await self.slack.user_says(CHANNEL, user, text, thread_ts=self.root)

    async def whispered(self, words: str, within_s: float = 10.0) -> None:
        await self.hero.until(
            lambda: [each for each in self.slack.ephemerals if words in each.text], within_s, f"whispers {words!r}"
        )

    async def until_live_status(self) -> None:
        await self.hero.until(lambda: self.said_on_github("hero:delivery=" + self.run_id + "/live"), 20, "live status")

    def let_github_hang(self) -> None:
        """Answer nothing on GitHub any more."""
        for depth in range(1, 9):
            self.github.fail("*", "/*" * depth, Stall(), times=10_000)

    # Hero's own books

    async def until_step(self, step: int) -> None:
        """Wait until Hero has seen this step or a later one: Iris may hold back the last lines of a job that hangs."""
        sql = f"SELECT 1 FROM runs WHERE json_extract(value, '$.progress.step') >= {step}"
        await self.hero.until(lambda: self.ask_database(sql), 20, f"step {step} is seen")

    async def refused(self, platform: str, why: str, *, times: int = 1, within_s: float = 15.0) -> None:
        """Wait until so many attempts to decide were refused for this reason, as the audit log has it."""
        sql = (
            "SELECT count(*) FROM audit WHERE what = 'decision_refused' "
            f"AND who LIKE '{platform}:%' AND detail LIKE '%: {why}'"
        )
        await self.hero.until(lambda: self.ask_database(sql) == [(times,)], within_s, f"{platform}: {why} x {times}")

    async def heard(self, event_id: str, within_s: float = 10.0) -> None:
        """Wait until something that was said is handled; ``event_id`` is the beginning of its name."""
        sql = f"SELECT count(*) FROM inbox WHERE event_id LIKE '{event_id}%' AND state = 'done'"
        await self.hero.until(lambda: self.ask_database(sql) != [(0,)], within_s, f"{event_id} is handled")

    async def until_handled(self) -> None:
        """Wait until nothing that was said waits any more."""
        sql = "SELECT count(*) FROM inbox WHERE state = 'pending'"
        await self.hero.until(lambda: self.ask_database(sql) == [(0,)], 10, "the inbox is empty")

    def ask_database(self, sql: str) -> list[tuple[Any, ...]]:
        """Read Hero's database beside it."""
        with closing(sqlite3.connect(f"file:{self.hero.database}?mode=ro", uri=True, timeout=10)) as connection:
            return connection.execute(sql).fetchall()

    def stored_bytes(self) -> bytes:
        """Everything that Hero has written anywhere."""
        files = [each for each in self._directory.rglob("*") if each.is_file() and each.parent.name != "runs"]
        return b"".join(each.read_bytes() for each in files)
