"""What is wrong with Discord now, by topic; each edge is logged once."""

import structlog

log = structlog.get_logger()


class Troubles:
    """Topics in order of their weight; a topic without text is in order."""

    TOPICS = ("token", "store", "link", "posting", "embeds", "reading", "content", "command")

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def set(self, topic: str, text: str) -> None:
        """Say what is wrong; saying it again changes nothing."""
        if self._texts.get(topic) != text:
            log.warning("discord_trouble_began", topic=topic, trouble=text)
        self._texts[topic] = text

    def clear(self, topic: str) -> None:
        if self._texts.pop(topic, None) is not None:
            log.info("discord_trouble_ended", topic=topic)

    def __str__(self) -> str:
        return "; ".join(self._texts[topic] for topic in self.TOPICS if topic in self._texts)
