"""Who may send frames of which checkpoint: the decision alone (rule EX7)."""

import asyncio

import pytest

from headgate_writer.known_members import KnownMembers
from headgate_writer.windows import ExchangeError
from support.exchange_peers import members_of, membership
from support.processes import READY_S


async def refusal(known: KnownMembers, sender: str, checkpoint: int) -> str:
    """Why a frame is refused now; fails when it would be taken, or waits."""
    with pytest.raises(ExchangeError) as refused:
        async with asyncio.timeout(READY_S):
            await known.check_sender(sender, checkpoint)
    return str(refused.value)


async def test_ex7_a_member_sends_frames_of_its_checkpoints_and_nobody_else_does() -> None:
    known = KnownMembers("me")
    known.add_membership(membership(1, "me", "a"))
    known.add_membership(membership(2, "me", "b"))
    await known.check_sender("a", 1)
    await known.check_sender("b", 2)
    for sender, checkpoint in (("b", 1), ("a", 2), ("stranger", 1), ("stranger", 2), ("", 1)):
        assert await refusal(known, sender, checkpoint) == f"process {sender} has no part in checkpoint {checkpoint} of the table"


@pytest.mark.parametrize("sender", ["a", "stranger"])
async def test_ex7_a_frame_of_the_next_checkpoint_waits_until_its_members_are_known(sender: str) -> None:
    """The exchange can be faster than the owner; a member that joins is known only then."""
    known = members_of(1, process="me", sender="b")
    waiting = asyncio.ensure_future(known.check_sender(sender, 2))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    known.add_membership(membership(2, "me", "a"))
    (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
    assert (outcome is None) == (sender == "a")


async def test_ex7_no_frame_waits_for_a_checkpoint_that_no_member_can_have_reached() -> None:
    known = members_of(1, 2, process="me", sender="a")
    for checkpoint in (4, 5, 2**53):
        assert "no part" in await refusal(known, "a", checkpoint)


async def test_a_frame_that_waits_goes_on_when_the_side_ends_which_then_refuses_it() -> None:
    known = members_of(1, process="me")
    async with asyncio.timeout(READY_S), asyncio.TaskGroup() as group:
        group.create_task(known.check_sender("stranger", 2))
        await asyncio.sleep(0)
        known.close()


async def test_a_late_frame_of_a_member_is_its_mistake_and_one_of_a_stranger_is_nothing() -> None:
    """However old its checkpoint is: few memberships are kept."""
    known = members_of(*range(5, 30), process="me", sender="a")
    for checkpoint in (0, 1, 5, 26, 29):
        await known.check_sender("a", checkpoint)
        assert "no part" in await refusal(known, "stranger", checkpoint)
    assert len(known._members) == 3


@pytest.mark.parametrize("of", [(), ("a", "b")], ids=["nobody's", "others'"])
async def test_nobody_has_frames_for_a_process_without_a_part(of: tuple[str, ...]) -> None:
    known = KnownMembers("me")
    assert "no part" in await refusal(known, "a", 0)
    known.add_membership(membership(3, *of))
    assert "no part" in await refusal(known, "a", 3)
