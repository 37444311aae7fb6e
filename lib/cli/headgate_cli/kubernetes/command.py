"""`headgate kubernetes`: what the chart's Jobs run inside of a cluster."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import click

from headgate_cli.credentials.command import check_hosts
from headgate_cli.credentials.renewal import Part, Wanted, renewed
from headgate_cli.durations import DURATION
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.kubernetes.api import SecretsApi
from headgate_cli.kubernetes.layout import ENDS, secrets_with, texts_of
from headgate_cli.output import Output, json_option
from headgate_runtime.world import SystemClock, SystemIds


@click.group("kubernetes", short_help="What the Helm chart's Jobs run.")
def kubernetes() -> None:
    """Commands that run inside of a Kubernetes cluster, as Jobs of the Helm chart."""


@kubernetes.command("credentials", short_help="Make and renew the cluster's Secrets.")
@click.option("--name", required=True, metavar="NAME", help="Begins the names of the Secrets: the release's.")
@click.option(
    "--part", "parts", multiple=True, required=True, type=click.Choice([part.value for part in Part]), help="What to make."
)
@click.option("--dns", multiple=True, metavar="NAME", help="A name by which clients call coordinators and writers; repeat it.")
@click.option("--redis-dns", multiple=True, metavar="NAME", help="A name by which coordinators call Redis; repeat it.")
@click.option("--cluster-domain", "domain", default="headgate.internal", show_default=True, help="As the services' setting.")
@click.option(
    "--valid",
    type=DURATION,
    default="90d",
    show_default=True,
    help="How long a certificate is valid; it is renewed in the last third.",
)
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label of the Secrets; repeat it.")
@json_option
@click.pass_obj
def credentials(
    output: Output,
    /,
    name: str,
    parts: tuple[str, ...],
    dns: tuple[str, ...],
    redis_dns: tuple[str, ...],
    domain: str,
    valid: timedelta,
    labels: tuple[str, ...],
) -> None:
    """Makes those Secrets that are missing, and renews certificates in the last third of their life.

    What is there and good stays as it is, so this can run as often as one likes. To have a part made anew, delete its Secret
    first: pods keep what they have until the new one is there. A token that was deleted in this way goes on to count for a day.

    With --part access and without --part tls, others make the Secret NAME-tls: cert-manager, or you. NAME-client gets its ca.crt.
    While NAME-tls is not there, all else is made, and the exit code is 4: run it again.
    """
    chosen = {Part(part) for part in parts}
    if (Part.TLS in chosen and not dns) or (chosen & {Part.REDIS, Part.REDIS_TLS} and not redis_dns):
        raise click.UsageError("--part tls wants --dns, and --part redis and redis-tls want --redis-dns")
    check_hosts("--dns", dns)
    check_hosts("--redis-dns", redis_dns)
    wanted = Wanted(dns, redis_dns, domain, valid, valid / 3, chosen, replaces_token=True, reloads_redis=True)
    api = SecretsApi.of_this_pod()
    made = 0
    # Last: an access file may take no further token, and a certificate that ends soon cannot wait until somebody corrects it.
    for some in (chosen - {Part.ACCESS}, chosen & {Part.ACCESS}):
        if some:
            made += _renew(api, name, replace(wanted, parts=some), _pairs(labels), output)
    if not made:
        output.print_text("Nothing is due.")


def _renew(api: SecretsApi, name: str, wanted: Wanted, labels: Mapping[str, str], output: Output) -> int:
    """Writes the Secrets that are due, and returns how many. Raises CommandError, also when that of clients is not whole yet."""
    found, versions = {}, {}
    for end in ENDS:
        found[end], versions[end] = api.read(f"{name}-{end}")
    now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
    made = secrets_with(found, renewed(texts_of(found), wanted, now, SystemIds()))
    for end, content in made.items():
        api.write(f"{name}-{end}", content, versions[end], labels)
        output.print_json({"secret": f"{name}-{end}", "keys": sorted(content), "was_there": bool(versions[end])})
        output.print_text(f"Secret {name}-{end}: {'renewed' if versions[end] else 'made'}")
    if Part.ACCESS in wanted.parts:
        _check_authority(output, name, found["tls"])
    return len(made)


def _check_authority(output: Output, name: str, tls: Mapping[str, str]) -> None:
    """``tls``: what NAME-tls held when NAME-client was made of it. Raises CommandError if that is to come.

    Services do not wait for it: their Secrets are written by then. A certificate without an authority is no error, as clients may
    know that of their system: issuers of ACME give none, so that one would wait for ever.
    """
    if not tls.get("tls.crt"):
        raise CommandError(
            f"there is no certificate in the Secret {name}-tls yet, whose ca.crt the Secret {name}-client has to have",
            fix="The Job tries again. If it stays so, `kubectl describe certificate` says what cert-manager waits for; with "
            "credentials.certificates=existing, make the Secret.",
            code=ExitCode.RETRY_LATER,
        )
    if not tls.get("ca.crt"):
        output.print_text(f"Secret {name}-tls has no ca.crt for {name}-client: clients have to know the authority by themselves.")


def _pairs(labels: tuple[str, ...]) -> Mapping[str, str]:
    pairs = [label.partition("=") for label in labels]
    if any(not between for _, between, _ in pairs):
        raise click.UsageError("--label wants KEY=VALUE")
    return {key: value for key, _, value in pairs}
