"""Names of files that wait on a local disk: unique in their instant, and known to processes of the version before."""

from headgate_tables.hudi.staged_names import staged_path

OWN, SHARED = "00000003-1c2d-4e5f-8a9b-0123456789ab-0", "00000003-0000-0000-0000-000000000000-0"


def test_a_file_of_an_id_of_its_own_waits_where_the_version_before_looks_for_it() -> None:
    assert staged_path("stage/1", "20260201000000000", "2026-02-01", OWN, 7) == f"stage/1/20260201000000000_{OWN}_7"


def test_a_file_that_is_created_in_place_waits_nowhere() -> None:
    assert {staged_path("", "20260201000000000", "2026-02-01", each, 7) for each in (OWN, SHARED)} == {""}


def test_files_of_one_id_in_two_partitions_have_two_names_that_begin_with_their_instant() -> None:
    paths = {staged_path("stage/1", "20260201000000000", day, SHARED, 1) for day in ("2026-02-01", "2026-02-02", "")}
    assert len(paths) == 3
    assert all(path.startswith("stage/1/20260201000000000_") and path.count("/") == 2 for path in paths)
