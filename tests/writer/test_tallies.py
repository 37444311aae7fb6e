"""What both ends of an exchange count."""

from headgate_writer.tallies import Tally, tally_messages


def of(*frames: tuple[int, int]) -> Tally:
    tally = Tally()
    for rows, checksum in frames:
        tally.add(rows, checksum)
    return tally


def test_frames_in_their_order_give_the_same_tally_and_no_others() -> None:
    right = of((3, 10), (4, 20))
    assert right == of((3, 10), (4, 20))
    assert right.rows == 7
    for wrong in (of((3, 20), (4, 10)), of((3, 10)), of((3, 10), (4, 20), (4, 20)), of((3, 10), (4, 21)), of((4, 20), (3, 10))):
        assert wrong.checksum != right.checksum


def test_a_checksum_fits_its_field_however_many_frames_there_are() -> None:
    tally = of(*[(1, 2**32 - 1)] * 1_000)
    (message,) = tally_messages({"other": tally})
    assert (message.process, message.rows, message.checksum) == ("other", 1_000, tally.checksum)


def test_rows_that_stay_in_the_process_have_no_checksum() -> None:
    assert of((3, 0), (4, 0)) == Tally(7, 0)
