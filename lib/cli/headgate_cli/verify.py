"""`headgate verify`: compares every byte of a table with what was committed."""

import click

from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.maintenance.target import call_owner, is_address, open_address
from headgate_cli.options import cluster_options, storage_option
from headgate_cli.output import Output, counted, json_option
from headgate_cli.table.location import locate_table
from headgate_tables.face.results import RepairResult


@click.command("verify", short_help="Compare a table with its commit log.")
@click.argument("table_name", metavar="TABLE")
@click.option(
    "--repair",
    is_flag=True,
    help="First restore files that were deleted from the timeline, and remove archived instants that reappeared.",
)
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def verify(output: Output, table_name: str, access: Access, storage: tuple[str, ...], repair: bool) -> int:
    """Compares commit log, timeline and files of TABLE (a name, or an address with a slash). Reads every byte once.

    Writes nothing and does not disturb writers or readers. Exit code 0: all agree; 1: problems are listed. A table that is being
    written may show a commit that is not published yet.

    A completed instant that is missing from the timeline makes results wrong in every reader; Headgate's own reads refuse such a
    table. --repair creates its files again from the commit log, and removes files of archived instants that reappeared, because
    these hide rows from every reader. The table's owner does so; with an address, this process does, and takes the table over as
    a write would.

    \b
    Examples:
      headgate verify flights
      headgate verify flights --repair
      headgate verify s3://lake/flights --json
    """  # noqa: D301 - click wants the backspace
    repaired = _repaired(table_name, access, storage) if repair else RepairResult((), ())
    with locate_table(table_name, access, storage).open() as table:
        found = table.verify()
    findings = [{"path": finding.path, "problem": finding.problem} for finding in found.findings]
    counts = {"slots": found.slots, "commits": found.commits, "files": found.files}
    output.print_json(
        {"ok": found.ok, **counts, "findings": findings, "repaired": list(repaired.put_back), "removed": list(repaired.removed)}
    )
    for path in repaired.put_back:
        output.print_text(f"{path}: restored.")
    for path in repaired.removed:
        output.print_text(f"{path}: removed, because it was archived before.")
    checked = f"{counted(found.slots, 'slot')}, {counted(found.commits, 'commit')} and {counted(found.files, 'file')}"
    if found.ok:
        output.print_text(f"{checked} agree.", fg="green")
        return ExitCode.OK
    output.print_text(f"{checked} checked, {len(findings):,} problems:", fg="red")
    for finding in findings:
        output.print_text(f"  {finding['path']}: {finding['problem']}")
    return ExitCode.PROBLEMS


def _repaired(table: str, access: Access, storage: tuple[str, ...]) -> RepairResult:
    if is_address(table):
        with open_address(table, storage) as opened_table:
            return opened_table.repair()
    answer = call_owner(access, table, lambda owner: owner.repair())
    return RepairResult(answer.files, answer.removed)
