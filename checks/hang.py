"""What is told of a run that stands still: who uses the processor, on which nodes, and where the threads are. Pure.

A collective that never ends leaves no error anywhere (marin-community/marin#7344, #8870): most tasks spin, a few stand
apart. Which they are is half of the diagnosis. What is not known is said as unknown; without a place to look at
(``Gap.NOT_CONFIGURED``) there is nothing to say.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import median

from bot.model.hang import HangEvidence, RankStatistics, TaskStack, TaskUse
from bot.model.job import Job, Task
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Snapshot
from checks.current import is_below, known_tasks, listed

_IDLE_CORES = 0.05
"""Below this a task is said to use none: a waiting Python process takes a few thousandths. Ours."""
_SPINNING_CORES = 0.9
"""From here on a thread of it runs all the time. Ours."""
_APART = 0.75
"""A task stands apart when it uses less than this share of what is usual, or that much more. In marin-community/
marin#8870 the stuck rack used 4.0 cores and the others 7.9."""
_WATCHDOG_EXIT = 124
"""With this code Levanter's progress watchdog ends a trainer that hangs (marin-levanter, source: ``EXIT_STALL``)."""
_SHOWN = 8
_GROUPS = 4


def hang_evidence(seen: Snapshot, since: datetime | None) -> tuple[str, ...]:
    """Return what is known of a run that stands still, each a line.

    Args:
        seen: the look, with what is on record of the hang.
        since: when it last moved; None when it never did.
    """
    tasks = _tasks(seen)
    match seen.hang:
        case Known(value=HangEvidence() as evidence):
            return (
                *_use_lines(evidence, tasks),
                *_node_lines(tasks, _apart(evidence, tasks)),
                *_rank_lines(evidence),
                *_stack_lines(evidence, tasks, since),
                *_unknown_lines(evidence),
            )
        case Unknown(reason=Gap.NOT_CONFIGURED | Gap.NOT_YET):
            return ()
        case gap:
            return (*_node_lines(tasks, ()), f"what its tasks do is unknown: {gap.detail}"[:300])


def _tasks(seen: Snapshot) -> dict[str, Task]:
    """Return the run's own tasks that live, without those of a job that has others below it, as a coordinator has."""
    live = tuple(job for job in listed(seen) if not job.state.is_terminal)
    leaves = tuple(job for job in live if not any(is_below(other, job) for other in live))
    return {task.task_id: task for _, task in known_tasks(_largest_last(leaves))}


def _largest_last(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    return tuple(
        sorted(jobs, key=lambda job: (len(job.tasks.value) if isinstance(job.tasks, Known) else 0, job.job_id))
    )


# Who uses the processor


def _use_lines(evidence: HangEvidence, tasks: dict[str, Task]) -> tuple[str, ...]:
    if isinstance(evidence.use, Unknown):
        return ()
    used = tuple(each for each in evidence.use.value if each.task_id in tasks)
    window = f"since {evidence.window_began_at:%H:%M} UTC"
    if not used:
        return (f"no use of processors is on record of its {len(tasks)} tasks {window}",) if tasks else ()
    by_job: dict[str, list[TaskUse]] = defaultdict(list)
    for each in used:
        by_job[each.task_id.rpartition("/")[0]].append(each)
    lines = [f"{_say_use(each, tasks)}{_of_job(job, by_job)}, {window}" for job, each in by_job.items()]
    silent = [task for task_id, task in tasks.items() if task_id not in {each.task_id for each in used}]
    if silent:
        lines.append(f"of {_say_tasks(silent)} no use of processors is on record: whether they spin is unknown")
    return (*lines, *_accelerator_line(used, tasks), _memory_line(used))


def _of_job(job: str, by_job: dict[str, list[TaskUse]]) -> str:
    return f" ({job.rpartition('/')[2]})" if len(by_job) > 1 else ""


def _say_use(used: list[TaskUse], tasks: dict[str, Task]) -> str:
    """Say which tasks of one job stand apart from the others, and by how much."""
    groups = _groups(used)
    count = len(used)
    if len(groups) == 1:
        word = "its only task" if count == 1 else f"all {count} tasks"
        return f"{word}: {_say_cores(used)}" if count == 1 else f"{word} alike: {_say_cores(used)}"
    *apart, usual = groups
    said = "; ".join(
        f"{len(group)} of {count} tasks {_say_cores(group)}: {_numbers(tasks[each.task_id] for each in group)}"
        f"{_on_nodes([tasks[each.task_id] for each in group])}"
        for group in apart
    )
    return f"{said}; the others {_say_cores(usual)}"


def _groups(used: Sequence[TaskUse]) -> list[list[TaskUse]]:
    """Return the tasks by what they use: idle ones, fewer, more, and last those that are as most of them."""
    idle = [each for each in used if each.cores < _IDLE_CORES]
    busy = [each for each in used if each.cores >= _IDLE_CORES]
    if not busy:
        return [idle]
    usual = median(each.cores for each in busy)
    less = [each for each in busy if each.cores < usual * _APART]
    more = [each for each in busy if each.cores > usual / _APART]
    alike = [each for each in busy if each not in less and each not in more]
    groups = [group for group in (idle, less, more) if group]
    return [*groups, alike] if alike else groups


def _apart(evidence: HangEvidence, tasks: dict[str, Task]) -> tuple[Task, ...]:
    """Return the tasks that stand apart from the others of their job."""
    if isinstance(evidence.use, Unknown):
        return ()
    by_job: dict[str, list[TaskUse]] = defaultdict(list)
    for each in evidence.use.value:
        if each.task_id in tasks:
            by_job[each.task_id.rpartition("/")[0]].append(each)
    return tuple(tasks[each.task_id] for used in by_job.values() for group in _groups(used)[:-1] for each in group)


def _say_cores(used: Sequence[TaskUse]) -> str:
    low, high = min(each.cores for each in used), max(each.cores for each in used)
    if high < _IDLE_CORES:
        return "use no CPU"
    cores = f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f}"
    return f"{'spin at' if low >= _SPINNING_CORES else 'use'} {cores} cores"


def _accelerator_line(used: Sequence[TaskUse], tasks: dict[str, Task]) -> tuple[str, ...]:
    known = [each for each in used if each.accelerator_fraction is not None]
    if not known:
        return ("use of accelerators is not recorded",)
    groups: dict[str, list[Task]] = defaultdict(list)
    for each in known:
        groups[f"{each.accelerator_fraction:.0%}"].append(tasks[each.task_id])
    if len(groups) > _GROUPS:
        shares = [each.accelerator_fraction or 0.0 for each in known]
        return (f"use of accelerators: {min(shares):.0%} to {max(shares):.0%}",)
    few = sorted(groups.items(), key=lambda item: len(item[1]))
    return ("use of accelerators: " + ", ".join(f"{share} ({_say_tasks(of)})" for share, of in few),)


def _memory_line(used: Sequence[TaskUse]) -> str:
    low, high = (bound(each.memory_bytes for each in used) for bound in (min, max))
    unit, size = ("GiB", 2**30) if high >= 2**30 else ("MiB", 2**20)
    first, last = f"{low / size:.1f}", f"{high / size:.1f}"
    return f"memory of a task: {first if first == last else f'{first} to {last}'} {unit}"


# On which nodes, now and before


def _node_lines(tasks: dict[str, Task], apart: Sequence[Task]) -> tuple[str, ...]:
    """Say where they run, and what the attempts that hung have in common; a watchdog's exit tells that one hung."""
    now = _nodes(tasks.values())
    if not now:
        return ("on which nodes its tasks run is unknown",) if tasks else ()
    hung = _hung_before(tasks.values())
    if not hung:
        return (f"on {_count(now, 'node')}: {_some(now)}",)
    names = f"attempt{'s' if len(hung) > 1 else ''} {', '.join(map(str, hung))}"
    ended = f"{names} hung as well (ended by the watchdog, exit {_WATCHDOG_EXIT})"
    before = set.intersection(*(set(nodes) for nodes in hung.values()))
    shared = [node for node in now if node in before]
    if not before:
        return (f"{ended}, on nodes that are unknown; now on {_count(now, 'node')}: {_some(now)}",)
    if not shared:
        return (f"{ended}, on none of the nodes of now: {_some(sorted(before))}; now on {_some(now)}",)
    if len(shared) == len(now):
        same = f"{ended}, on the same {_count(now, 'node')}: {_some(now)}"
        return (same, *_again(apart, shared))
    lines = f"{ended}; the attempts that hung shared {_count(shared, 'node')} of {len(now)}: {_some(shared)}"
    return (lines, *_again(apart, shared))


def _again(apart: Sequence[Task], shared: Sequence[str]) -> tuple[str, ...]:
    suspects = [node for node in _nodes(apart) if node in shared]
    return (f"of those, tasks stand apart on {_some(suspects)}",) if suspects else ()


def _hung_before(tasks: Iterable[Task]) -> dict[int, tuple[str, ...]]:
    """Return the nodes of each earlier attempt of the gang of which a task was ended by its watchdog, by number."""
    nodes: dict[int, dict[str, None]] = defaultdict(dict)
    hung: set[int] = set()
    for task in tasks:
        for attempt in task.attempts[:-1]:
            if attempt.exit_code == _WATCHDOG_EXIT:
                hung.add(attempt.attempt)
            if attempt.node:
                nodes[attempt.attempt][attempt.node] = None
    return {number: tuple(nodes[number]) for number in sorted(hung)}


def _nodes(tasks: Iterable[Task]) -> list[str]:
    names = (task.current_attempt.node for task in tasks if task.current_attempt is not None)
    return sorted({name for name in names if name})


# Which ranks are behind


def _rank_lines(evidence: HangEvidence) -> tuple[str, ...]:
    if isinstance(evidence.ranks, Unknown) or evidence.ranks.value is None:
        return ()
    told = evidence.ranks.value
    asked = f"NCCL RAS at {told.at:%H:%M:%S} UTC" + (f" ({told.trigger})" if told.trigger else "")
    if told.failed:
        return (f"{asked} gave no answer: {told.failed}; which ranks are behind is unknown",)
    lines = [f"{asked}: {_say_ranks(told)}"]
    if told.counted:
        worst = told.counted[0]
        lines.append(
            f"farthest apart: {worst.collective} in {worst.communicator}, {worst.most - worst.fewest} calls "
            f"({worst.fewest} to {worst.most}); one sample may catch ranks that are apart for a moment"
        )
    if told.odd:
        shown = "; ".join(
            f"rank {each.rank or '?'}{f' on {each.host}' if each.host else ''} ({', '.join(each.says)})"
            for each in told.odd[:_GROUPS]
        )
        more = f" and {len(told.odd) - _GROUPS} more" if len(told.odd) > _GROUPS else ""
        lines.append(f"odd ranks: {shown}{more}")
    if not told.is_whole:
        lines.append("that answer did not arrive whole: a rank that it does not name may still be odd")
    return tuple(lines)


def _say_ranks(told: RankStatistics) -> str:
    of = f" of {told.communicators}" if told.communicators is not None else ""
    disagree = f"{told.disagreeing}{of} communicators disagree on how far they are"
    counts = (("missing", told.missing), ("unresponsive", told.unresponsive), ("considered dead", told.considered_dead))
    ranks = ", ".join(f"{count} {word}" for word, count in counts if count)
    return f"{disagree}; ranks: {ranks or 'all answered'}"


# Where the threads stand


def _stack_lines(evidence: HangEvidence, tasks: dict[str, Task], since: datetime | None) -> tuple[str, ...]:
    if isinstance(evidence.stacks, Unknown):
        return ()
    stacks = [each for each in evidence.stacks.value if each.task_id in tasks]
    groups: dict[tuple[str, ...], list[TaskStack]] = defaultdict(list)
    for each in stacks:
        if each.main is not None:
            groups[each.main.frames].append(each)
    if not groups:
        return ()
    few = sorted(groups.items(), key=lambda item: len(item[1]))[:_GROUPS]
    oldest = min(each.at for each in stacks)
    early = ", the earliest of them before the last step" if since is not None and oldest <= since else ""
    head = f"thread dumps of {len(stacks)} of {len(tasks)} tasks, from {oldest:%H:%M:%S} UTC on{early}"
    lines = tuple(
        f"main thread of {_say_tasks([tasks[each.task_id] for each in group])}: {' < '.join(frames)}"
        for frames, group in few
    )
    rest = f"main threads at {len(groups) - _GROUPS} further places" if len(groups) > _GROUPS else ""
    return (head, *lines, *((rest,) if rest else ()))


# What is not known


def _unknown_lines(evidence: HangEvidence) -> tuple[str, ...]:
    """Say each part that could not be read, and which were read and hold nothing."""
    parts = (
        ("use of processors", evidence.use),
        ("where its threads stand", evidence.stacks),
        ("statistics of ranks (NCCL RAS)", evidence.ranks),
    )
    failed = tuple(f"{what}: unknown, {part.detail}"[:300] for what, part in parts if isinstance(part, Unknown))
    absent = [what for what, part in parts[1:] if isinstance(part, Known) and not part.value]
    return (*failed, *((f"not on record: {', '.join(absent)}",) if absent else ()))


# Words


def _say_tasks(tasks: Sequence[Task]) -> str:
    return f"task{'s' if len(tasks) > 1 else ''} {_numbers(tasks)}"


def _numbers(tasks: Iterable[Task]) -> str:
    """Return indices as people write them: ``3, 5, 112-127``."""
    spans: list[list[int]] = []
    for index in sorted({task.index for task in tasks}):
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    shown = [f"{low}" if low == high else f"{low}-{high}" for low, high in spans[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(spans) - _SHOWN} more" if len(spans) > _SHOWN else "")


def _on_nodes(tasks: Sequence[Task]) -> str:
    nodes = _nodes(tasks)
    return f" (on {_some(nodes)})" if nodes else " (on nodes that are unknown)"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _count(names: Sequence[str], word: str) -> str:
    return f"{len(names)} {word}{'' if len(names) == 1 else 's'}"
