"""`headgate access`: makes tokens, and explains the file that says who may do what. Needs no cluster."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar, Unpack

import click

from headgate_cli.access.records import (
    ClaimNames,
    claim_options,
    has_expired,
    quota_record,
    role_record,
    token_record,
    usage_record,
)
from headgate_cli.credentials.command import credentials
from headgate_cli.durations import as_duration
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.output import Output, json_option
from headgate_runtime.access.client_certificates import WANTED, is_name
from headgate_runtime.access.file import AccessFile, AccessFileError, is_principal, read_access_file
from headgate_runtime.access.identity import CERTIFIED, Identity
from headgate_runtime.access.quotas import usage_of
from headgate_runtime.access.rights import Allowed, Right, Role
from headgate_runtime.access.tokens import digest_of, new_token
from headgate_runtime.world import SystemClock, SystemIds

_Command = TypeVar("_Command", bound=Callable[..., object])


def _file_option(command: _Command) -> _Command:
    return click.option(
        "--access",
        "path",
        envvar="HEADGATE_ACCESS",
        required=True,
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="The access file of the services. Also HEADGATE_ACCESS.",
    )(command)


@click.group("access", short_help="Tokens, and who may do what.")
def access() -> None:
    """Makes tokens, and explains the file of --access, which says who may do what.

    \b
    Examples:
      headgate access token loader --expires 90d
      headgate access list --access access.toml
      headgate access check loader write flights --channel loader/1 --access access.toml
      headgate access credentials /etc/headgate --host headgate.example.org
    """  # noqa: D301 - click wants the backspace


access.add_command(credentials)


@access.command("token", short_help="Make a token.")
@click.option(
    "--expires",
    default="365d",
    show_default=True,
    metavar="WHEN",
    help='A duration such as "90d" or "12h", a time with its zone such as 2027-01-31T00:00:00Z, or "never".',
)
@json_option
@click.argument("principal")
@click.pass_obj
def token_command(output: Output, /, principal: str, expires: str) -> None:
    """Makes a token for PRINCIPAL, and the line of the access file that makes it count.

    The token is shown this once: the line has its digest alone. Give the token to the program, and put the line under [tokens].

    \b
    Example:
      headgate access token loader --expires 90d
    """  # noqa: D301 - click wants the backspace
    if not is_principal(principal):
        raise click.UsageError(
            f"{principal!r} is no name of a principal: want visible ASCII characters, not 'cluster' or 'anonymous'"
        )
    token, end = new_token(SystemIds()), _end(expires)
    until = f", expires = {end}" if end else ""
    line = f'"{digest_of(token)}" = {{ principal = "{_escaped(principal)}"{until} }}'
    output.print_json({"principal": principal, "token": token, "expires": end or None, "line": line})
    output.print_text("The token, which is not shown again:")
    output.print_text(f"  {token}", bold=True)
    output.print_text("Under [tokens] of the access file:")
    output.print_text(f"  {line}")


@access.command("list", short_help="Show tokens, roles and quotas.")
@click.option("--principal", default="", metavar="NAME", help="Only its tokens and roles.")
@_file_option
@claim_options
@json_option
@click.pass_obj
def list_command(output: Output, /, path: Path, principal: str, **claims: Unpack[ClaimNames]) -> None:
    """Shows the tokens, the roles and the quotas of the access file, each with its line.

    Names that begin with the prefix of signed tokens (jwt:) come from claims: `from_claims` says which.

    \b
    Examples:
      headgate access list --access access.toml
      headgate access list --access access.toml --principal loader
    """  # noqa: D301 - click wants the backspace
    found = _read(path)
    now_ms = SystemClock().now_ms()
    identity = Identity(principal)
    tokens = [each for each in found.tokens if not principal or each.principal == principal]
    roles = [*found.policy.roles_of(identity)] if principal else found.policy.roles
    groups = found.policy.groups_of(identity)
    quotas = [each for each in found.quotas if not principal or each.names(principal, groups)]
    if output.json:
        output.print_records([{"kind": "token", **token_record(each, now_ms)} for each in tokens])
        output.print_records([{"kind": "role", **role_record(each, claims)} for each in roles])
        output.print_records([{"kind": "quota", **quota_record(each, claims)} for each in quotas])
        return
    output.print_records([token_record(each, now_ms) for each in tokens], empty="no tokens")
    output.print_text("")
    output.print_records([role_record(each, claims) for each in roles], empty="no roles: nobody may do anything")
    output.print_text("")
    output.print_records([quota_record(each, claims) for each in quotas], empty="no quotas")


@access.command("check", short_help="Say whether a principal may do something.")
@click.option("--channel", default=None, metavar="NAME", help="With write: the channel through which rows are sent.")
@click.option(
    "--group", "groups", multiple=True, metavar="NAME", help="A group that its authenticator gives it; may be repeated."
)
@_file_option
@claim_options
@json_option
@click.argument("principal")
@click.argument("right", type=click.Choice([right.value for right in Right]))
@click.argument("table")
@click.pass_obj
def check_command(
    output: Output,
    /,
    path: Path,
    principal: str,
    right: str,
    table: str,
    channel: str | None,
    groups: tuple[str, ...],
    **claims: Unpack[ClaimNames],
) -> int:
    """Says whether PRINCIPAL has RIGHT on TABLE, by which line, and within which quotas. The exit code is 0 if it has, 1 if not.

    Of a signed token give the names as the access file has them: jwt:ann, --group jwt:ingest. Of a client's certificate:
    cert:loader.example.org, cert:spiffe://example.org/loader.

    \b
    Example:
      headgate access check loader write flights --access access.toml
    """  # noqa: D301 - click wants the backspace
    found = _read(path)
    identity = Identity(principal, groups=frozenset(groups))
    decision = found.policy.decide(identity, Right(right), table, channel)
    now_ms = SystemClock().now_ms()
    tokens = sum(each.principal == principal and not has_expired(each, now_ms) for each in found.tokens)
    usage = usage_record(usage_of(found.quotas, principal, found.policy.groups_of(identity)))
    record = {"principal": principal, "right": right, "table": table, "channel": channel, "tokens": tokens, "quotas": usage}
    if isinstance(decision, Allowed):
        role = decision.role
        assert role is not None  # noqa: S101 - clients are allowed by roles alone
        output.print_json({**record, "allowed": True, "line": role.line})
        output.print_text(f"yes, by the role on line {role.line} of {path}{_through(role, principal, channel)}", fg="green")
    else:
        output.print_json({**record, "allowed": False, "why": decision.message})
        output.print_text(f"no: {decision.message}", fg="red")
    for name, most in usage.items():
        output.print_text(f"  at most {most:,} {name}")
    if proved := _proved(principal, tokens, claims):
        output.print_text(proved)
    return ExitCode.OK if isinstance(decision, Allowed) else ExitCode.PROBLEMS


def _proved(principal: str, tokens: int, claims: ClaimNames) -> str:
    """By what a caller shows that it is the principal; "" where nothing has to be said of its tokens."""
    if principal.startswith(CERTIFIED):
        name = principal.removeprefix(CERTIFIED)
        kind = "SPIFFE id" if "/" in name else "DNS name"
        return f"certificates name it by the {kind} {name}" if is_name(name) else f"no certificate can name it: want {WANTED}"
    if principal.startswith(claims["jwt_prefix"]):
        return f"signed tokens name it by the claim {claims['jwt_principal']}"
    return "" if tokens else f"{principal} has no token in the file that counts now"


def _read(path: Path) -> AccessFile:
    """Raises CommandError for a file that is wrong, OSError for one that cannot be read."""
    try:
        return read_access_file(path.read_text(encoding="utf-8"))
    except (AccessFileError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {error}", fix="Correct the file.", code=ExitCode.FIX_CALL, kind="AccessFileError") from error


def _end(expires: str) -> str:
    """As TOML has it; empty for never."""
    if expires == "never":
        return ""
    try:
        end = datetime.fromisoformat(expires) if "-" in expires else _now() + as_duration(expires)
        if end.tzinfo is None:
            raise ValueError("no zone")
        return end.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f'--expires {expires}: want a duration such as "90d", a time, or "never"') from error


def _now() -> datetime:
    return datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)


def _through(role: Role, principal: str, channel: str | None) -> str:
    prefixes: Sequence[str] = role.prefixes_of(principal) if channel is None else ()
    return f", through channels that begin with {' or '.join(map(repr, prefixes))}" if prefixes else ""


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')
