"""Why the owner refuses an open or ends a hold, as clients see it."""

from headgate_coordinator.core.instructions import Refusal

MOVED = Refusal(
    "CODE_MOVED",
    "this writer no longer serves the table",
    "Open the channel again at another writer; accepted rows are safe.",
)
HANDED_OVER = Refusal(
    "CODE_UNAVAILABLE", "the table is being handed over to another coordinator", "Open the channel again in a moment."
)
HANDING_OVER = Refusal(
    "CODE_MOVED", "the table is being handed over to another coordinator", "Open the channel again; accepted rows are safe."
)
TAKEN_OVER = Refusal(
    "CODE_CHANNEL_TAKEN_OVER", "a newer producer has opened this channel", "Stop this producer, or give it a channel of its own."
)
OPENED_AGAIN = Refusal(
    "CODE_MOVED", "the channel was opened on another stream", "Open it again: the answer says whether this producer still has it."
)
FORBIDDEN = Refusal(
    "CODE_CHANNEL_FORBIDDEN",
    "the channel belongs to another principal",
    "Use another channel name, or the principal that opened it first.",
)
RESTORED = Refusal(
    "CODE_TABLE_RESTORED",
    "an operator takes the table back to an older state",
    "Open the channel again: the answer is the offset from which to send again.",
)
ADOPTED = Refusal(
    "CODE_REWOUND",
    "an operator adopts what another program did to the table",
    "Open the channel again and send again what lies behind the committed offset.",
)
ALTERED = Refusal("CODE_MOVED", "the table's columns change", "Open the channel again; accepted rows are safe.")
LENT = Refusal("CODE_MOVED", "an operator works on the whole table", "Open the channel again; accepted rows are safe.")
TRUNCATED = Refusal("CODE_MOVED", "an operator removes rows of the table", "Open the channel again; rows that it sends are kept.")
EXPIRED = Refusal("CODE_MOVED", "old partitions of the table expire", "Open the channel again; rows that it sends are kept.")
DROPPING = Refusal(
    "CODE_MOVED",
    "an operator drops the table",
    "Open the channel again: the answer says whether the table is dropped.",
)
RENAMING = Refusal(
    "CODE_MOVED",
    "an operator renames the table",
    "Open the channel again: the answer says what the table is called now.",
)
NOT_RECORDED = Refusal(
    "CODE_UNAVAILABLE", "the table's storage did not take the channel's record", "Open the channel again in a moment."
)
NEVER_ISSUED = Refusal(
    "CODE_INVALID_ARGUMENT",
    "the table has never given this channel such an incarnation, or has forgotten the idle channel since",
    "Open the channel as a new producer, with incarnation 0.",
)
USED_UP = Refusal("CODE_INVALID_ARGUMENT", "the channel's incarnations are used up", "Use another channel name.")
