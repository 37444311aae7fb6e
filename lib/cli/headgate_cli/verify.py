"""`headgate verify`: every byte of a table against what was committed."""

import click

from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.options import cluster_options, storage_option
from headgate_cli.output import Output, json_option
from headgate_cli.table.place import find_place


@click.command("verify")
@click.argument("table_name", metavar="TABLE")
@cluster_options()
@storage_option
@json_option
@click.pass_obj
def verify(output: Output, table_name: str, access: Access, storage: tuple[str, ...]) -> int:
    """Compares commit log, timeline and files of TABLE (a name, or an address with a slash), reading every byte once.

    Writes nothing and disturbs nobody. Exit code 0: all agree; 1: something does not, and is listed. A table that is being
    written may show a commit that is not published yet.
    """
    with find_place(table_name, access, storage).open() as table:
        found = table.verify()
    findings = [{"path": finding.path, "problem": finding.problem} for finding in found.findings]
    output.emit({"ok": found.ok, "slots": found.slots, "commits": found.commits, "files": found.files, "findings": findings})
    checked = f"{found.slots:,} slots, {found.commits:,} commits and {found.files:,} files"
    if found.ok:
        output.say(f"{checked} agree.", fg="green")
        return ExitCode.OK
    output.say(f"{checked} checked, {len(findings):,} problems:", fg="red")
    for finding in findings:
        output.say(f"  {finding['path']}: {finding['problem']}")
    return ExitCode.PROBLEMS
