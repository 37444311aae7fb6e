"""`headgate verify`: every byte of a table against what was committed."""

import click

from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.maintenance.where import ask_owner, is_address, opened
from headgate_cli.options import cluster_options, storage_option
from headgate_cli.output import Output, json_option
from headgate_cli.table.place import find_place
from headgate_tables.hudi import Repaired


@click.command("verify")
@click.argument("table_name", metavar="TABLE")
@click.option(
    "--repair",
    is_flag=True,
    help="First put back what somebody has deleted from the timeline, as far as slots say it, and remove what was archived.",
)
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def verify(output: Output, table_name: str, access: Access, storage: tuple[str, ...], repair: bool) -> int:
    """Compares commit log, timeline and files of TABLE (a name, or an address with a slash), reading every byte once.

    Writes nothing and disturbs nobody. Exit code 0: all agree; 1: something does not, and is listed. A table that is being
    written may show a commit that is not published yet.

    A completed instant that was deleted from the timeline makes every reader's result wrong, and reads here refuse the table.
    With --repair its files are created again from the commit log: by the table's owner, or with an address by this process,
    which takes a table without a cluster over as a write does. Files of archived instants that have come back, which hide rows
    from every reader, are removed.
    """
    repaired = _repaired(table_name, access, storage) if repair else Repaired((), ())
    with find_place(table_name, access, storage).open() as table:
        found = table.verify()
    findings = [{"path": finding.path, "problem": finding.problem} for finding in found.findings]
    counts = {"slots": found.slots, "commits": found.commits, "files": found.files}
    output.emit(
        {"ok": found.ok, **counts, "findings": findings, "repaired": list(repaired.put_back), "removed": list(repaired.removed)}
    )
    for path in repaired.put_back:
        output.say(f"{path} is back.")
    for path in repaired.removed:
        output.say(f"{path} was archived and is gone again.")
    checked = f"{found.slots:,} slots, {found.commits:,} commits and {found.files:,} files"
    if found.ok:
        output.say(f"{checked} agree.", fg="green")
        return ExitCode.OK
    output.say(f"{checked} checked, {len(findings):,} problems:", fg="red")
    for finding in findings:
        output.say(f"  {finding['path']}: {finding['problem']}")
    return ExitCode.PROBLEMS


def _repaired(table: str, access: Access, storage: tuple[str, ...]) -> Repaired:
    if is_address(table):
        with opened(table, storage) as opened_table:
            return opened_table.repair()
    answer = ask_owner(access, table, lambda owner: owner.repair())
    return Repaired(answer.files, answer.removed)
