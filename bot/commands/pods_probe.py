"""What ``hero doctor`` asks of Kubernetes."""

from bot.clock import Clock
from bot.commands.probing import Probe, bad, good
from bot.errors import ServiceError
from bot.settings import KubernetesSettings
from bot.sources.kubernetes.source import KubernetesPods


async def probe_kubernetes(settings: KubernetesSettings, clock: Clock) -> tuple[Probe, ...]:
    """List the pods once, as each look does.

    A namespace that does not exist holds no pods too, as far as the API server is concerned: none is worth a note.
    """
    if not settings.is_set:
        return (good("kubernetes", "not configured"),)
    try:
        found = await KubernetesPods(settings, clock).listed()
    except ServiceError as error:
        fix = "correct [kubernetes]; the account needs to list pods in the namespace, and nothing else"
        return (bad("kubernetes", error.detail, fix),)
    if not found:
        fix = "if Iris runs jobs there now, correct [kubernetes] namespace or selector: pods elsewhere are not seen"
        return (good("kubernetes", f"answers, and no pod matches {settings.selector}", fix),)
    return (good("kubernetes", f"{len(found)} pods match {settings.selector}"),)
