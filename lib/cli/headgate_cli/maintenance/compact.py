"""`headgate compact`: merges log files into new base files, by the cluster's compactors or in this process."""

from collections.abc import Iterable
from typing import Any

import click

from headgate.maintenance import Maintenance
from headgate_cli.cluster import Access
from headgate_cli.exits import ExitCode
from headgate_cli.maintenance.progress import WorkBar
from headgate_cli.maintenance.target import call_owner, fields_of, is_address, open_address, table_command
from headgate_cli.output import Output, Record, counted, size
from headgate_tables.face.operation import Operation

_NO_COMPACTOR = "No compactor is connected to the owner, so the plan waits: start one with `headgate compactor`."


@click.command("compact", short_help="Merge log files into base files now.")
@click.option("--plan-only", is_flag=True, help="Show what would be compacted; change nothing.")
@click.option("--sort", is_flag=True, help="Also rewrite base files that are not in the order of the table's settings.")
@table_command
def compact(output: Output, table_name: str, access: Access, storage: tuple[str, ...], plan_only: bool, sort: bool) -> int:
    """Merges all present log files of TABLE into new base files.

    TABLE is a name: its owner makes a plan, the cluster's compactors carry it out, and this command shows their progress; Ctrl-C
    ends only this command. Or TABLE is an address with a slash (s3://…, gs://…, a path): this process does the work. Writers
    and readers continue meanwhile.

    Base files of a table with the setting hoodie.clustering.plan.strategy.sort.columns are sorted whenever they are compacted.
    --sort also rewrites those that have no log files and are not in that order yet (Hudi calls that clustering).

    Exit code 1: some operations failed too often and were left out. Their slices stay as they were, and the alarms of
    `headgate status` say why.

    \b
    Examples:
      headgate compact flights
      headgate compact flights --plan-only
      headgate configure flights hoodie.clustering.plan.strategy.sort.columns=origin,dest
      headgate compact flights --sort
      headgate compact s3://lake/flights --storage region=eu-west-1 --json

    With --json: lines with "event": "planned", "progress" (cluster) and "compacted".
    """  # noqa: D301 - click wants the backspace
    if is_address(table_name):
        return _in_this_process(output, table_name, storage, plan_only, sort)
    return call_owner(access, table_name, lambda owner: _by_owner(output, owner, plan_only, sort))


async def _by_owner(output: Output, owner: Maintenance, plan_only: bool, sort: bool) -> int:
    code: int = ExitCode.OK
    with WorkBar(output, "compacting") as bar:
        async for answer in owner.compact(plan_only=plan_only, sort=sort):
            match answer.WhichOneof("message"):
                case "planned":
                    _planned(output, fields_of(answer.planned), plan_only)
                case "progress":
                    done = answer.progress
                    note = f"{done.finished} of {done.operations} slices, {size(done.bytes_done)} of {size(done.bytes)}"
                    bar.at(fields_of(done), done.bytes_done, done.bytes, note)
                case "ended":
                    code = _compacted(output, fields_of(answer.ended)["plans"])
                case None:
                    pass  # from a newer server: the contract may grow
    return code


def _in_this_process(output: Output, address: str, storage: tuple[str, ...], plan_only: bool, sort: bool) -> int:
    with open_address(address, storage) as table, WorkBar(output, "compacting") as bar:
        planned = table.compact(plan_only=True, sort=sort).planned
        plans = [{"instant": "", "operations": _operations(planned)}] if planned else []
        _planned(output, {"plans": plans, "compactors": 1}, plan_only)
        if plan_only or not planned:
            return ExitCode.OK
        begun: dict[str, int] = {}

        def progress(operation: Operation, rows: int) -> None:
            begun[operation.output] = rows
            record = {"operations": len(planned), "running": len(begun), "rows": sum(begun.values())}
            note = f"slice {len(begun)} of {len(planned)}, {counted(record['rows'], 'row')}"
            bar.at(record, len(begun) - 1, len(planned), note)

        done = table.compact(progress=progress, sort=sort)
    dropped = _operations(done.dropped)
    return _compacted(
        output, [{"instant": done.instant, "finished": len(done.finished), "dropped": dropped, "cancelled": not done.completion}]
    )


def _operations(operations: Iterable[Operation]) -> list[Record]:
    return [
        {
            "partition": each.partition,
            "file_id": each.file_id,
            "base_bytes": each.base.size if each.base else 0,
            "log_files": len(each.logs),
            "log_bytes": sum(log.size for log in each.logs),
        }
        for each in operations
    ]


def _planned(output: Output, record: dict[str, Any], plan_only: bool) -> None:
    output.print_json({"event": "planned", **record})
    operations = [each for plan in record["plans"] for each in plan["operations"]]
    if plan_only and not output.json:
        shown = [
            {**each, "base": size(each["base_bytes"]), "logs": each["log_files"], "log bytes": size(each["log_bytes"])}
            for each in operations
        ]
        output.print_records(shown, ["partition", "file_id", "base", "logs", "log bytes"], empty="nothing to compact")
        return
    total = size(sum(each["base_bytes"] + each["log_bytes"] for each in operations))
    output.print_text(f"{counted(len(operations), 'slice')} to compact, {total}." if operations else "Nothing to compact.")
    if operations and not record["compactors"]:
        output.print_text(_NO_COMPACTOR, fg="yellow")


def _compacted(output: Output, plans: list[dict[str, Any]]) -> int:
    output.print_json({"event": "compacted", "plans": plans})
    for plan in plans:
        if plan["cancelled"]:
            output.print_text(f"{plan['instant']}: cancelled before it was done.", fg="yellow")
        else:
            output.print_text(f"{plan['instant']}: {counted(plan['finished'], 'slice')} compacted.", fg="green")
        for each in plan["dropped"]:
            output.print_text(f"  left out: {each['partition'] or '.'}/{each['file_id']}", fg="yellow")
    return ExitCode.PROBLEMS if any(plan["dropped"] for plan in plans) else ExitCode.OK
