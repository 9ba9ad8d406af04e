"""The relaunch plan: pure, from a contract and a snapshot; built once to ask and once more just before it is done."""

from bot.actions.ports import Launcher, Submission, Unlaunchable
from bot.model.code import CodeState
from bot.model.contract import Contract
from bot.model.planned import NoPlan, PlannedCheckpoint, RelaunchPlan
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.run import Instance
from bot.model.snapshot import Snapshot, newest_complete
from bot.redaction import Redactor
from checks.check import thresholds_of
from checks.code import LINEAGE, checkout_astray, is_cut_off
from checks.kin import rivals


def plan_relaunch(
    contract: Contract, seen: Snapshot, instance: Instance | None, launcher: Launcher, redactor: Redactor
) -> RelaunchPlan | NoPlan:
    """Return exactly what a relaunch would do: same run id, same output root, newest complete checkpoint.

    Source: babysit-job, "Loop" step 8; manage-hero-run, "What Can Go Wrong", items "Midrun crash", "Wrong checkpoint
    selected" and "Wrong code lineage".
    """
    if isinstance(seen.jobs, Unknown):
        detail = f"the job's state is unknown: {seen.jobs.detail}"
        return NoPlan(reason=detail, fix="nothing to do but to mend the link to the orchestrator", is_unknown=True)
    if isinstance(seen.checkpoints, Unknown):
        return NoPlan(
            reason=f"the checkpoints cannot be verified: {seen.checkpoints.detail}",
            fix="mend the access to the checkpoint roots; nothing is relaunched on a guess",
            is_unknown=True,
        )
    barred = _barred_by_another(seen) or _barred_by_code(seen.code, contract)
    if barred is not None:
        return barred
    submission = launcher.prepare(contract, number=instance.number + 1 if instance else 0)
    if isinstance(submission, Unlaunchable):
        return NoPlan(
            reason="the contract's command may not be submitted: " + "; ".join(submission.problems),
            fix=f"mend `command` in runs/{contract.run_id}.toml",
            is_unknown=False,
        )
    job = seen.job
    newest = newest_complete(seen.checkpoints.value)
    shape = shape_of(contract, redactor)
    plan = RelaunchPlan(
        run_id=contract.run_id,
        instance=job.instance_id if job else "",
        stop=job.job_id if job and not job.state.is_terminal else None,
        command=redactor.argv(submission.command),
        command_sha256=contract.command_sha256,
        environment=tuple(sorted(contract.environment)),
        directory=contract.checkout,
        job_id=submission.job_id,
        output_root=contract.output_root,
        resume_from=PlannedCheckpoint(step=newest.step, path=newest.path) if newest else None,
        source_sha=contract.source_sha,
        code=_code_of(seen.code, contract),
        config_digest=contract.config_digest,
        changes=(*submission_notes(submission), *changes_between(instance.shape if instance else {}, shape)),
    )
    # The store scrubs whatever it keeps: a plan that it would change could never be redeemed by its digest.
    return RelaunchPlan.model_validate(redactor.value(plan.model_dump(mode="json")))


def _barred_by_another(seen: Snapshot) -> NoPlan | None:
    """Return why no second job of the run may be started: another one lives, or nobody can say. None when it may.

    Source: deploy checklist, "Rehearse preflight and rollback": launch refuses a live coordinator; exactly one.
    """
    if isinstance(seen.neighbours, Unknown):
        if seen.neighbours.reason is Gap.NOT_CONFIGURED:
            return None
        return NoPlan(
            reason=f"whether another job of this run is alive is not known: {seen.neighbours.detail}",
            fix="mend the link to the orchestrator; nothing is launched beside a job that may be there",
            is_unknown=True,
        )
    others = rivals(seen)
    if not others:
        return None
    names = ", ".join(job.job_id for job in others)
    return NoPlan(
        reason=f"another job of this run is alive: {names}; a launch would make two writers of one output root",
        fix="find out which one is the run; end the other by hand, or name the one that lives as "
        "[orchestrator] job_id in the contract",
        is_unknown=False,
        evidence=tuple(f"{job.job_id}: {job.state}, submitted {job.submitted_at:%Y-%m-%d %H:%M} UTC" for job in others),
    )


def _barred_by_code(code: Reading[CodeState], contract: Contract) -> NoPlan | None:
    """Return why nothing may be launched from the checkout as it is; None when it may."""
    match code:
        case Unknown(reason=Gap.NOT_CONFIGURED):
            return None
        case Unknown(detail=detail):
            fix = "mend what git says there; nothing is relaunched from code that was not looked at"
            return NoPlan(reason=f"the source cannot be verified: {detail}", fix=fix, is_unknown=True)
        case Known(value=state):
            astray = checkout_astray(state, contract, thresholds_of(LINEAGE, contract))
            if not astray:
                return None
            return NoPlan(
                reason="; ".join(f"{each.text}: {each.means}" for each in astray),
                fix="; ".join(each.fix for each in astray),
                is_unknown=is_cut_off(state),
            )


def _code_of(code: Reading[CodeState], contract: Contract) -> str:
    return code.value.identity if isinstance(code, Known) and contract.bundle is None else ""


def submission_notes(submission: Submission) -> tuple[str, ...]:
    """What Hero itself adds to the command, as lines of the plan."""
    return tuple(f"added by Hero: {note}" for note in submission.notes)


def shape_of(contract: Contract, redactor: Redactor) -> dict[str, str]:
    """Return the launch-shaping fields of a contract as they may be stored and shown."""
    shape = contract.shape()
    shape["command"] = " ".join(redactor.argv(contract.command))
    shape["environment"] = ", ".join(sorted(contract.environment)) or "none"
    return {name: redactor.text(value) for name, value in shape.items()}


def changes_between(before: dict[str, str], now: dict[str, str]) -> tuple[str, ...]:
    """Say field by field what differs from the instance before; nothing when that one's shape is not on record."""
    if not before:
        return ()
    names = sorted({*before, *now})
    return tuple(
        f"{name}: {before.get(name, 'not set')} → {now.get(name, 'not set')}"
        for name in names
        if before.get(name) != now.get(name)
    )


def differences(asked: RelaunchPlan, rebuilt: RelaunchPlan) -> tuple[str, ...]:
    """Say field by field how a rebuilt plan differs from the one that was asked about, in words and never in hashes."""
    old, new = asked.model_dump(mode="json"), rebuilt.model_dump(mode="json")
    changed = [name for name in old if old[name] != new[name]]
    lines = [f"{name}: {_brief(old[name])} → {_brief(new[name])}" for name in changed if name not in _HASHED]
    if "code" in changed:
        lines.append(_say_code(asked.code, rebuilt.code))
    if "command_sha256" in changed and not {"command", "environment", "directory"} & set(changed):
        names = f" ({', '.join(rebuilt.environment)})" if rebuilt.environment else ""
        lines.append(f"a value that is not shown, of the command or of [environment]{names}, has changed")
    elif "config_digest" in changed and not lines:
        lines.append("a field of the contract that shapes the launch has changed")
    return tuple(lines)


_HASHED = ("command_sha256", "config_digest", "code")


def _say_code(old: str, new: str) -> str:
    head, now = old.partition(" ")[0], new.partition(" ")[0]
    if head == now:
        return f"code: what is not committed in the checkout has changed; it is still at {now}"
    return f"code: the checkout is at {now or 'no commit that is known'}, and was at {head or 'none that was known'}"


def _brief(value: object) -> str:
    match value:
        case None:
            return "none"
        case dict():
            return ", ".join(f"{key} {each}" for key, each in value.items())
        case list():
            return " ".join(str(each) for each in value) or "none"
        case _:
            return str(value)
