"""How many channels of a table belong to each principal, so that none takes more than its quota."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping

from headgate_coordinator.core.events import OpenRequested
from headgate_coordinator.core.instructions import Refusal


class ChannelCounts:
    """``recorded``: principals of the channels that slots record, one for each channel."""

    def __init__(self, recorded: Iterable[str]) -> None:
        self._recorded = Counter(recorded)

    def add(self, principal: str) -> None:
        """A slot records one more."""
        self._recorded[principal] += 1

    def remove(self, principal: str) -> None:
        """One was forgotten."""
        self._recorded[principal] -= 1

    def refusal(
        self, request: OpenRequested, waiting: Iterable[Mapping[str, OpenRequested]], recorded: Container[str]
    ) -> Refusal | None:
        """Of the open of a channel that is not ``recorded``. ``waiting``: opens by channel that are about to be recorded, also
        those of recorded channels.
        """
        if not request.channels or request.incarnation:  # an incarnation that was never issued is recorded by no slot
            return None
        count = self._recorded[request.principal]
        if count < request.channels:
            opens = (each for by_channel in waiting for each in by_channel.values() if each.principal == request.principal)
            count += sum(each.incarnation == 0 and each.channel not in recorded for each in opens)
        if count < request.channels:
            return None
        return Refusal(
            "CODE_QUOTA",
            f"the principal has {count} channels of this table, and its quota `channels` is {request.channels}",
            "Use one of its channels again, have the operators raise `channels` in [[quotas]] of the access file, or wait until "
            "idle channels are forgotten.",
        )
