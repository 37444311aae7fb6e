"""What slots say together (rule T5), decision by decision, and that a fold says no less."""

import dataclasses
import json
from collections.abc import Mapping, Sequence

import pytest

from headgate_tables.commitlog.bodies import Commit, Created, Dead, Offsets, Reserve, SlotKind
from headgate_tables.commitlog.fields import Json
from headgate_tables.commitlog.folds import decode_fold, encode_fold
from headgate_tables.commitlog.log_format import LogFormat
from headgate_tables.commitlog.records import (
    ChannelRecord,
    Channels,
    DropRecord,
    GraceRecord,
    OwnerProcess,
    Savepoint,
    encode_derived,
)
from headgate_tables.commitlog.slot import Body, Slot, decode_slot, hash_of
from headgate_tables.commitlog.state import LogState
from headgate_tables.commitlog.times import TimeGenerator, TimesAhead, format_time
from headgate_tables.errors import CorruptFileError, UnsupportedTableError
from headgate_tables.hudi.decisions.adoption import Adopt
from headgate_tables.hudi.decisions.altering import Altered
from headgate_tables.hudi.decisions.plans import PlanDone, PlanMade
from headgate_tables.hudi.decisions.retention import Archive, Clean
from headgate_tables.hudi.decisions.savepoints import Restore, SavepointMade
from support.log_layout import LOG_LAYOUT
from support.systems import NOON, SetClock

FIRST, SECOND, THIRD, FOURTH = (format_time(NOON + 1_000 * number) for number in range(1, 5))


def state_after(*decisions: Body) -> LogState:
    state = LogState(LOG_LAYOUT)
    for n, body in enumerate([Created(config={}, time=format_time(NOON), publish=[]), *decisions]):
        slot = Slot(n, 1, f"{n:032x}", state.last_hash, body)
        state.apply(slot, hash_of(slot.encode()))
    return state


def committed(instant: str, *, shown: bool = True, reserved: Sequence[str] | None = None) -> Commit:
    channels = {"c": ChannelRecord(1, int(instant) % 100_000, "me", 1)}
    publish = encode_derived([("done", b"x")] if shown else [])
    return Commit(instant=instant, completion=later(instant), files=[], channels=channels, publish=publish, reserved=reserved)


def later(instant: str) -> str:
    return f"{int(instant) + 1}"


def planned(instant: str) -> PlanMade:
    return PlanMade(instant=instant, operations=[], publish=[])


def cleaned(instant: str, earliest: str) -> Clean:
    return Clean(instant=instant, completion=later(instant), names=[], earliest=earliest, publish=[])


def restored(undone: Sequence[str], outputs: Mapping[str, Sequence[str]], channels: Channels) -> Restore:
    return Restore(
        instant=FOURTH,
        completion=later(FOURTH),
        to=FIRST,
        undone=undone,
        outputs=outputs,
        names=["p/gone"],
        channels=channels,
        publish=[],
    )


def adopted(*names: str) -> Adopt:
    return Adopt(
        completed={},
        removed=[],
        dead={},
        plans={},
        refused={},
        savepoints={},
        unsaved=[],
        archived="",
        cleaned="",
        config={},
        names=names,
        time=FOURTH,
    )


def test_a_fold_gives_back_all_that_the_state_holds() -> None:
    full = LogState(
        LOG_LAYOUT,
        n=7,
        last_hash="a" * 64,
        epoch=3,
        time=FOURTH,
        owner=OwnerProcess("cluster", "here", 1, "localhost:1"),
        config={"name": "t"},
        settings={"a": "b"},
        reserved=[FOURTH],
        commits={SECOND: later(SECOND)},
        dead={THIRD: ["p/dead"]},
        gone={FIRST: None},
        channels={"c": ChannelRecord(1, 2, "me", 3)},
        plans={THIRD: [["operation"]]},
        refused={SECOND: ["p/late"]},
        savepoints={SECOND: Savepoint(THIRD, later(SECOND), {})},
        deleting={"clean": ["p/old"]},
        archived=FIRST,
        cleaned=SECOND,
        restored=THIRD,
        stuck={"p/f": {"aside": True}},
        ahead=TimesAhead(FOURTH, 1_000),
        grace=GraceRecord(FOURTH, "ann", 2_000),
        dropped=DropRecord(FOURTH, "ann"),
        folded=7,
    )
    unset = [
        each.name for each in dataclasses.fields(LogState) if getattr(full, each.name) == getattr(LogState(LOG_LAYOUT), each.name)
    ]
    assert unset == ["layout"]
    assert decode_fold(json.loads(json.dumps(encode_fold(full))), LOG_LAYOUT) == full


def test_an_instant_is_ours_with_the_completion_that_a_slot_decided_and_with_no_other() -> None:
    state = state_after(committed(FIRST))
    assert state.has_completed(FIRST, "deltacommit", later(FIRST))
    assert not state.has_completed(FIRST, "deltacommit", later(later(FIRST)))
    assert not state.has_completed(SECOND, "deltacommit", later(SECOND))


def test_archiving_takes_instants_up_to_the_named_one_off_the_books_and_they_stay_ours() -> None:
    state = state_after(committed(FIRST), committed(SECOND), committed(THIRD), Archive(until=SECOND, names=["x"]))
    assert list(state.commits) == [THIRD]
    assert state.deleting == {f"archive {SECOND}": ["x"]}
    for instant in (FIRST, SECOND):
        assert state.has_reserved(instant)
        assert state.has_completed(instant, "deltacommit", later(instant))
    assert not state.has_reserved(later(THIRD))


def test_a_committed_instant_is_not_dead_when_its_reservation_ends() -> None:
    reserved = Reserve(reserved=[FIRST, SECOND])
    ends = committed(FIRST, reserved=[THIRD])
    assert list(state_after(reserved, ends).dead) == [SECOND]


def test_a_commit_of_offsets_alone_is_not_missed_on_the_timeline() -> None:
    """Rule RO5: it derives no file, so nothing there says that it completed."""
    state = state_after(Reserve(reserved=[FIRST]), committed(FIRST, shown=False, reserved=[]))
    assert (state.commits, state.dead) == ({}, {})
    assert state.has_reserved(FIRST)
    assert state.channels == {"c": ChannelRecord(1, int(FIRST) % 100_000, "me", 1)}


def test_names_of_a_dead_instant_add_up_until_they_are_gone_and_then_it_is_still_known() -> None:
    first = Dead(named={FIRST: ["x"]}, swept=[])
    second = Dead(named={FIRST: ["y"]}, swept=[])
    state = state_after(first, second)
    assert state.dead == {FIRST: ["x", "y"]}
    state = state_after(first, second, Dead(named={}, swept=[FIRST]))
    assert state.dead == {}
    assert state.has_reserved(FIRST)
    state = state_after(first, Dead(named={}, swept=[FIRST]), second)
    assert (state.dead, state.gone) == ({FIRST: ["y"]}, {})


def test_outputs_that_a_plan_was_completed_without_are_remembered() -> None:
    done = PlanDone(instant=FIRST, completion=later(FIRST), files=[], names=["p/late"], publish=[])
    state = state_after(planned(FIRST), done)
    assert (state.plans, state.refused, state.commits) == ({}, {FIRST: ["p/late"]}, {FIRST: later(FIRST)})


def test_how_far_back_the_table_can_be_read_never_moves_back() -> None:
    assert state_after(cleaned(THIRD, SECOND), cleaned(FOURTH, "")).cleaned == SECOND


def test_what_a_restore_undid_is_neither_committed_nor_saved_nor_another_programs() -> None:
    saved = SavepointMade(saved=SECOND, completion=THIRD, point=later(SECOND), channels={}, publish=[])
    plan = planned(THIRD)
    back = restored([SECOND, THIRD], outputs={THIRD: ["p/output"]}, channels={"c": ChannelRecord(1, 0, "me", 1)})
    state = state_after(committed(FIRST), committed(SECOND), saved, plan, back)
    assert list(state.commits) == [FIRST, FOURTH]
    assert state.savepoints == {}
    assert state.plans == {}
    assert state.dead == {THIRD: ["p/output"]}
    assert state.has_reserved(SECOND)
    assert not state.has_completed(SECOND, "deltacommit", later(SECOND))
    assert state.channels == {"c": ChannelRecord(1, 0, "me", 1)}
    assert state.restored == FOURTH


@pytest.mark.parametrize("alters", [True, False])
def test_a_savepoint_keeps_what_a_key_was_before_it_changed_and_that_it_was_absent(alters: bool) -> None:
    def changing(instant: str, config: Mapping[str, Json]) -> Body:
        if alters:
            return Altered(instant=instant, completion=later(instant), config=config, publish=[])
        return dataclasses.replace(committed(instant), config=config)

    saved = SavepointMade(saved=FIRST, completion=SECOND, point=later(FIRST), channels={}, publish=[])
    state = state_after(committed(FIRST), changing(SECOND, {"a": 1}), saved, changing(THIRD, {"a": 2, "b": 3}))
    assert state.savepoints[FIRST].config == {"a": 1, "b": None}
    assert state.config == {"a": 2, "b": 3}
    slot = Slot(state.n + 1, 1, "f" * 32, state.last_hash, changing(FOURTH, {"a": 4, "b": 5}))
    state.apply(slot, hash_of(slot.encode()))
    assert state.savepoints[FIRST].config == {"a": 1, "b": None}


def test_adopting_deletes_data_before_the_instants_that_tell_of_them() -> None:
    """Hazard H9: without its instant on the timeline a file would pass for an archived commit's."""
    state = state_after(adopted("meta/timeline/1.deltacommit.requested", "p/file", "meta/.temp/1/marker"))
    assert [paths[0] for paths in state.deleting.values()] == ["p/file", "meta/timeline/1.deltacommit.requested"]
    assert list(state.deleting.values())[1][1:] == ["meta/.temp/1/marker"]


def test_adopting_never_takes_back_what_was_archived_or_cleaned_before() -> None:
    before = (
        committed(FIRST),
        Archive(until=SECOND, names=[]),
        cleaned(THIRD, SECOND),
    )
    state = state_after(*before, adopted())
    assert (state.archived, state.cleaned) == (SECOND, SECOND)


def test_a_slot_under_another_number_is_seen() -> None:
    data = Slot(3, 1, "0" * 32, "0" * 64, Offsets(channels={}, forget=[])).encode()
    assert decode_slot(data, LOG_LAYOUT, 3).n == 3
    with pytest.raises(CorruptFileError, match="it says that it is slot 3"):
        decode_slot(data, LOG_LAYOUT, 4)


def test_a_time_in_whole_seconds_of_another_program_stands_for_the_end_of_its_second() -> None:
    times = TimeGenerator(SetClock(), format_time(NOON))
    times.observe(format_time(NOON + 2_000)[:14])
    assert times.next() == format_time(NOON + 3_000)


def test_every_kind_of_slot_is_read_by_the_log_itself_or_by_a_table_service() -> None:
    own = {SlotKind.CONFIG, SlotKind.FENCE, SlotKind.RESERVE, SlotKind.COMMIT, SlotKind.OFFSETS, SlotKind.DEAD}
    assert set(LOG_LAYOUT.services) == set(SlotKind) - own


def test_a_log_refuses_slots_of_services_that_its_format_does_not_have() -> None:
    slot = Slot(1, 1, 32 * "0", 64 * "0", Archive(until=FIRST, names=[]))
    with pytest.raises(UnsupportedTableError, match=r"is of the kind 'ARCHIVE', which this version does not know.*Upgrade"):
        decode_slot(slot.encode(), LogFormat("meta", {}), 1)
    assert decode_slot(slot.encode(), LOG_LAYOUT, 1) == slot
