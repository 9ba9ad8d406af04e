"""The world of a trial: two commits of a real repository, two runs on the real Iris cluster, Finelog, Slack, a Hero.

    async with TrialScene(tmp_path, iris_cluster, "good", change="--loss-factor 1.005") as scene:
        scene.launch()                      # the old run, from its own commit
        scene.hero.start()
        await scene.begin()                 # plan, yes, review
        await scene.approved("cut over")

The old run is NAME-old, its child NAME-new; ``change`` is what the child's commit does differently. What a test holds
at its end against the world is read from the controller, from Finelog and from what the trainers wrote themselves.
"""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from finelog.client import LogClient

from tests.e2e.hero import to_toml
from tests.e2e.scene import CHANNEL, DRI, OTHER, Scene
from tests.fakes.iris_cluster import IrisCluster
from tests.fakes.repositories import Origin
from tests.fakes.slack_values import Post
from tests.fakes.wandb import FakeWandb

HANDOFF = 40
"""The child starts from ``step-40``; the next checkpoints are 400 steps further on."""
WINDOW = 40
USER = "marin"
ALIVE = frozenset({"PENDING", "BUILDING", "RUNNING"})
GATES = ("loss mean <= +0.002", "tokens_per_second mean >= -5%", "grad_norm mean within 0.01")
PROJECT = "hero"
FORK_OFFSET = 3
"""The tracker's own ``_step`` of a row is so much above the trainer's."""


@dataclass(frozen=True)
class Start:
    """One start of a trainer, as it wrote it down itself."""

    sha: str
    uid: str
    job_id: str


class TrialScene(Scene):
    """A scene with two runs, of which the contract of the first plans a trial.

    Args:
        directory: for Hero.
        cluster: where the runs are.
        name: what both runs' names begin with; unique in the cluster.
        change: words for the trainer's command line, committed with the child's code.
        retries: of the child's job, by Iris.
        automatic: whether a rollback needs no further yes.
        wandb: the tracker, where there is one.
    """

    def __init__(
        self,
        directory: Path,
        cluster: IrisCluster,
        name: str,
        *,
        change: str = "",
        retries: int = 0,
        automatic: bool = True,
        wandb: FakeWandb | None = None,
    ) -> None:
        super().__init__(directory, cluster, f"{name}-old")
        self.child_id = f"{name}-new"
        self.job_id, self.child_job = f"/{USER}/{self.run_id}", f"/{USER}/{self.child_id}"
        self.child_home = cluster.work / self.child_id
        self.wandb = wandb
        self._retries = retries
        self._automatic = automatic
        self._finelog: LogClient | None = None
        self._pump: asyncio.Task[None] | None = None
        # Jobs run in the cluster's directory; the checkouts lie below it so that they find their program.
        self.origin = Origin(cluster.work / f"{name}-git")
        old = self.origin.clone("old")
        old.write("launch.json", json.dumps({"trainer": {"num_train_steps": 1_000_000, "seed": 17}}))
        self.old_sha = old.commit("train.py", Path(__file__).with_name("trial_trainer.py").read_text())
        old.push()
        new = self.origin.clone("new")
        self.new_sha = new.commit("change", f"{change}\n")
        new.push()
        self.old, self.new = old, new
        self.downstream = Origin(cluster.work / f"{name}-downstream-git").clone("downstream")
        self.downstream.commit("dashboards/loss.md", f"The loss of {self.run_id}, every hour.\n")
        self.downstream.push()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.hero.write_contract(self.child_id, self.child_contract())
        if self.wandb is not None:
            self._pump = asyncio.create_task(self._track(self.wandb), name="tracker")
        return self

    async def __aexit__(self, *exit_: object) -> None:
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
        await super().__aexit__(*exit_)  # type: ignore[arg-type] # as they come
        if self._finelog is not None:
            self._finelog.close()
        with suppress(OSError):
            if self.cluster.state(self.child_job) in ALIVE:
                self.cluster.rpc("TerminateJob", {"jobId": self.child_job})

    @property
    def secrets(self) -> dict[str, str]:
        slack = {"HERO_SLACK__BOT_TOKEN": self.slack.bot_token, "HERO_SLACK__APP_TOKEN": self.slack.app_token}
        return slack | ({"HERO_WANDB__API_KEY": self.wandb.key} if self.wandb else {})

    def sections(self) -> dict[str, dict[str, str]]:
        sections = super().sections()
        del sections["github"]
        sections |= {"people.dana": {"slack": f'"{DRI}"'}, "people.omar": {"slack": f'"{OTHER}"'}}
        if self.wandb is not None:
            sections["wandb"] = {
                "entity": f'"{self.wandb.entity}"',
                "project": f'"{PROJECT}"',
                "base_url": f'"{self.wandb.url}"',
                "deadline": '"10s"',
            }
        return sections

    # The contracts

    def contract(self) -> str:
        trial = {
            "child_run_id": f'"{self.child_id}"',
            "child_root": json.dumps(f"{self.child_home}/checkpoints"),
            "handoff_step": str(HANDOFF),
            "window_steps": str(WINDOW),
            "gates": json.dumps(GATES),
            "coverage_gaps": '["evaluations", "the child\'s own save and resume"]',
            "automatic_rollback": json.dumps(self._automatic),
            "startup_limit": '"40s"',
            "rollback_by": f"{datetime.now(UTC) + timedelta(hours=8):%Y-%m-%dT%H:%M:%SZ}",
            "look": '"1s"',
            "inventory": json.dumps([str(self.downstream.path)]),
        }
        if self.wandb is not None:
            trial["fork_step"] = str(HANDOFF - 1 + FORK_OFFSET)
        return self._contract(self.run_id, self.old.path, self.old_sha, {"trial": trial})

    def child_contract(self) -> str:
        return self._contract(self.child_id, self.new.path, self.new_sha, {})

    def _contract(self, run_id: str, checkout: Path, sha: str, tables: dict[str, dict[str, str]]) -> str:
        is_child = run_id == self.child_id
        retries = ("--max-retries", str(self._retries)) if is_child and self._retries else ()
        top = {
            "dri": '"dana"',
            "command": json.dumps(
                [
                    *map(str, self._submit_with),
                    *("job", "run", "--no-wait", "--no-sync", "--job-name", run_id, *retries),
                    *("--", *self._program(run_id)),
                ]
            ),
            "checkout": json.dumps(str(checkout)),
            "source_sha": json.dumps(sha),
            "output_root": json.dumps(str(self.cluster.work / run_id)),
            "final_step": "1000000",
        }
        if is_child:
            top["initialize_from"] = json.dumps(str(self.handoff))
        if self.wandb is not None:
            tracker = {
                "mode": '"online"',
                "entity": f'"{self.wandb.entity}"',
                "project": f'"{PROJECT}"',
                "id": f'"{run_id}"',
                "resume": '"allow"',
            }
            tables = {**tables, "tracker": tracker}
        tables = {
            **tables,
            "environment": {"IRIS_USER": f'"{USER}"'},
            "orchestrator": {"kind": '"iris"', "job_id": f'"/{USER}/{run_id}"'},
            "config": {"launch": '"launch.json"', "file": '"{output_root}/config.json"'},
            "cadence": {"check": '"1s"', "after_submit": '"1s"', "stabilise": '"1s"'},
            'thresholds."monitor.stale"': {"cadences": "60"},
            # A step takes a 25th of a second here; on a busy machine its row may still be seconds late.
            'thresholds."progress.stalled"': {"quiet": '"12s"'},
        }
        return "\n".join(f"{key} = {value}" for key, value in top.items()) + "\n\n" + to_toml(tables)

    def _program(self, run_id: str) -> tuple[str, ...]:
        """The trainer's own words, the same for both runs but for where the child begins."""
        checkout = self.new if run_id == self.child_id else self.old
        program = str((checkout.path / "train.py").relative_to(self.cluster.work))
        words = ("python", program, run_id, "--home", run_id)
        # In one word: Iris rewrites arguments that begin with /tmp/.
        return (*words, f"--initialize-from={self.handoff}") if run_id == self.child_id else words

    @property
    def handoff(self) -> Path:
        return self.home / "checkpoints" / f"step-{HANDOFF}"

    # The runs

    def launch(self) -> None:
        """Launch the old run by hand, as its owner did; also again, once its job has ended."""
        again = {"existingJobPolicy": "EXISTING_JOB_POLICY_UNSPECIFIED"}
        self.cluster.launch(self.job_id, *self._program(self.run_id), **again)

    def launch_child(self) -> None:
        """Launch the child by hand, for tests without a Hero."""
        retries = {"maxRetriesFailure": self._retries, "maxTaskFailures": self._retries}
        self.cluster.launch(self.child_job, *self._program(self.child_id), **retries)

    async def until_saved(self) -> None:
        """Wait until the handoff checkpoint is complete."""
        await self.hero.until((self.handoff / "metadata.json").exists, 60, "the handoff checkpoint is complete")

    def stop(self, job_id: str) -> None:
        """Cancel a job by hand, and see it terminal."""
        self.cluster.rpc("TerminateJob", {"jobId": job_id})
        self.cluster.wait_for(job_id)

    def lose_the_handoff(self) -> None:
        """Let somebody clean up what they take for an old checkpoint."""
        gone = self.handoff.with_name("gone")
        self.handoff.rename(gone)

    async def _track(self, wandb: FakeWandb) -> None:
        """Bring what the trainers have logged to the tracker, as they would do themselves; a child's once it is there.

        The tracker's own ``_step`` is not the trainer's step: a few rows were logged before the first one.
        """
        wandb.run(PROJECT, self.run_id, display_name=self.run_id, created_at=_now(), heartbeat_at=_now())
        while True:
            for run in wandb.stored(PROJECT):
                for row in await self.rows(run.id):
                    number = row["step"] + FORK_OFFSET
                    if number > run.last_step:
                        values = {"train/loss": row["value"], "global_step": row["step"]}
                        wandb.log(run, values, step=number, at=datetime.now(UTC))
                        run.heartbeat_at = _now()
            await asyncio.sleep(0.5)

    # The chat

    @property
    def root(self) -> str:
        """The thread of the old run: where its trial's requests are put."""
        asked = self.said_on_slack("may Hero")
        return asked[-1].thread_ts or asked[-1].ts

    def asked(self, words: str) -> Post | None:
        """The newest request of these words; None when it was not put yet."""
        found = [post for post in self.said_on_slack("may Hero") if words in post.shown]
        return found[-1] if found else None

    async def until_said(self, words: str, within_s: float = 60.0) -> None:
        await self.hero.until(lambda: self.said_on_slack(words), within_s, f"Slack is told {words!r}")

    async def command(self, user: str, text: str) -> None:
        """Somebody types ``/hero …``, again when nobody has heard it: Slack delivers it once, or never."""
        while True:
            await self.hero.until(lambda: self.slack.open_sockets, 60, "Hero listens to Slack")
            if (await self.slack.slash(user, CHANNEL, "/hero", text)).acked:
                return

    async def approved(self, words: str, within_s: float = 60.0) -> None:
        """Wait for a request of these words and let the DRI say yes to it."""
        await self.hero.until(lambda: self.asked(words), within_s, f"{words!r} is asked")
        post = self.asked(words)
        assert post is not None
        found = re.search(r"\b(R\d+): may Hero", post.shown)
        assert found is not None
        number = found[1]
        await self.slack.user_says(CHANNEL, DRI, f"approve {number}", thread_ts=post.thread_ts)

    async def begin(self) -> None:
        """Plan the trial, agree to it, and let a second person review it once it is rehearsed."""
        await self.until_saved()
        await self.command(DRI, f"trial plan {self.run_id}")
        await self.approved(f"prepare the trial of {self.child_id}")
        await self.until_stage("planned", "recorded", "rehearsed", "control_complete")
        await self.command(OTHER, f"trial reviewed {self.run_id}")

    async def cut_over(self) -> None:
        """Bring the trial from nothing to the DRI's yes to the cut-over."""
        self.launch()
        self.hero.start()
        await self.begin()
        await self.approved(f"launch {self.child_id} in its place")

    # What is held against the world

    @property
    def stage(self) -> str | None:
        """How far Hero says the trial is."""
        sql = f"SELECT json_extract(value, '$.trial.stage') FROM runs WHERE run_id = '{self.run_id}'"
        rows = self.ask_database(sql) if self.hero.database.exists() else []
        return rows[0][0] if rows else None

    @property
    def trial(self) -> dict[str, Any]:
        """The trial as Hero has it stored."""
        sql = f"SELECT json_extract(value, '$.trial') FROM runs WHERE run_id = '{self.run_id}'"
        ((value,),) = self.ask_database(sql)
        return dict(json.loads(value))

    @property
    def reached(self) -> list[str]:
        """Every stage that the trial reached, oldest first."""
        return [step["stage"] for step in self.trial["steps"]]

    async def until_stage(self, *stages: str, within_s: float = 60.0) -> None:
        await self.hero.until(lambda: self.stage in stages, within_s, f"the trial is {' or '.join(stages)}")

    def living(self) -> list[str]:
        """Every job of either run that lives, by what the controller says now."""
        answer = self.cluster.rpc("ListJobs", {"query": {"jobIdPrefix": f"/{USER}/", "limit": 200}})
        mine = (self.job_id, self.child_job)
        return [
            job["jobId"]
            for job in answer.get("jobs", [])
            if job["jobId"].startswith(mine) and job["state"].removeprefix("JOB_STATE_") in ALIVE
        ]

    def starts(self, run_id: str) -> list[Start]:
        """Every start of a trainer of this run, oldest first."""
        file = self.cluster.work / run_id / "lives"
        lines = file.read_text().splitlines() if file.exists() else []
        told = [json.loads(line) for line in lines]
        return [Start(sha=each["sha"], uid=each["uid"], job_id=each["job_id"]) for each in told]

    async def rows(self, run_id: str, name: str = "train_loss") -> list[dict[str, Any]]:
        """Every row of one figure of a run in Finelog: ``execution_uid``, ``step``, ``value``, as they arrived."""
        if self._finelog is None:
            self._finelog = LogClient.connect(f"{self.cluster.url}/proxy/system.log-server")
        sql = (
            'SELECT execution_uid, job_id, step, value FROM "levanter.metrics" '
            f"WHERE run_id = '{run_id}' AND name = '{name}' ORDER BY seq"
        )
        found = await asyncio.to_thread(self._finelog.query, sql)
        return list(found.to_pylist())

    async def assert_one_lives(self, run_id: str, sha: str) -> None:
        """Exactly one job of both runs lives: this run's, from this commit, and its rows arrive under its own id."""
        job_id = f"/{USER}/{run_id}"
        assert self.living() == [job_id]
        before = len(await self.rows(run_id))

        async def trains() -> bool:
            new = (await self.rows(run_id))[before:]
            return bool(new) and new[-1]["execution_uid"] == f"iris:{self.attempt(job_id)}"

        await self.hero.until(trains, 30, f"rows of {run_id} arrive")
        assert [start.sha for start in self.starts(run_id) if start.uid == self.attempt(job_id)] == [sha]
        assert self.living() == [job_id]

    def attempt(self, job_id: str) -> str | None:
        """The uid of the job's newest attempt; None before it has one."""
        attempts = [each for task in self.cluster.tasks(job_id) for each in task.get("attempts", [])]
        return str(attempts[-1]["attemptUid"]) if attempts else None


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


@asynccontextmanager
async def killing(scene: TrialScene, seed: str, *, times: int, every_s: tuple[float, float]) -> AsyncIterator[None]:
    """Kill Hero at random moments while something goes on, and start it again at once.

    Args:
        scene: whose Hero.
        seed: of the moments; printed, so that a failure can be had again.
        times: at most so often, so that the story comes to its end.
        every_s: between what and what the pauses are, in seconds.
    """
    moments = random.Random(seed)
    pauses = [moments.uniform(*every_s) for _ in range(times)]
    print(f"Hero is killed after {', '.join(f'{pause:.2f}' for pause in pauses)} s (seed {seed!r})")  # noqa: T201 - shown when it fails

    async def kill() -> None:
        for pause in pauses:
            await asyncio.sleep(pause)
            scene.hero.kill()
            scene.hero.start()

    killer = asyncio.create_task(kill(), name="killer")
    try:
        yield
        if killer.done():
            killer.result()
    finally:
        killer.cancel()
        with suppress(asyncio.CancelledError):
            await killer
