"""`headgate access credentials`: makes and renews what a cluster needs to be safe. Needs no cluster."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from headgate_cli.credentials.authority import is_host
from headgate_cli.credentials.folder import found_in, write
from headgate_cli.credentials.renewal import Wanted, renewed
from headgate_cli.durations import DURATION
from headgate_cli.output import Output, json_option
from headgate_runtime.world import SystemClock, SystemIds


@click.command("credentials", short_help="Make certificates, a token and an access file.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    required=True,
    metavar="NAME",
    help="A DNS name or address by which clients reach coordinators and writers; may be repeated.",
)
@click.option("--redis-host", "redis_hosts", multiple=True, metavar="NAME", help="The same of Redis: makes its files, too.")
@click.option("--valid", type=DURATION, default="365d", show_default=True, help="Of certificates.")
@click.option("--left", type=DURATION, default="60d", show_default=True, help="A certificate with less is made anew.")
@json_option
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.pass_obj
def credentials(
    output: Output, /, folder: Path, hosts: tuple[str, ...], redis_hosts: tuple[str, ...], valid: timedelta, left: timedelta
) -> None:
    """Makes in FOLDER what is missing or near its end, and leaves the rest: run it again to renew.

    \b
      tls/      certificate that clients see          --tls-cert, --tls-key
      cluster/  what services show each other         --cluster-cert, --cluster-key, --cluster-ca
      access/   who may do what                       --access
      client/   a token that may do everything, and   --token-file, --tls-ca of commands
                the authority that clients trust
      redis/    for Redis, and a coordinator's        --config, --redis-ca
      ca/       keys of the authorities: only this command needs them

    \b
    Example:
      headgate access credentials /etc/headgate --host headgate.example.org --host 10.0.0.7
    """  # noqa: D301 - click wants the backspace
    wanted = Wanted(hosts, redis_hosts, valid=valid, left=left)
    check_hosts("--host", hosts)
    check_hosts("--redis-host", redis_hosts)
    if left >= valid:
        raise click.UsageError("--left is not below --valid")
    now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
    made = renewed(found_in(folder), wanted, now, SystemIds())
    write(folder, made)
    output.print_json({"folder": str(folder), "made": sorted(made)})
    output.print_text("\n".join(f"made {folder}/{name}" for name in sorted(made)) or f"{folder}: nothing to renew")


def check_hosts(option: str, hosts: tuple[str, ...]) -> None:
    """Raises click.UsageError for a name that no certificate can be for."""
    for host in hosts:
        if not is_host(host):
            raise click.UsageError(
                f"{option} {host!r}: want a DNS name (in ASCII, xn--… otherwise) or an IP address, without a port"
            )
