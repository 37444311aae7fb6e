"""Settings of a service: each is declared once, and read from flags, the environment and a file, in this order of precedence."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Self, TypeVar

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from headgate_runtime.secret_settings import holds_secret, is_header, is_pem, is_secret_option
from headgate_runtime.setting_flags import flags_of
from headgate_runtime.values import Address, Duration, LocalAddress, is_named_values, is_safe_url, named_values

PREFIX = "HEADGATE_"


class ServiceSettings(BaseSettings):
    """The settings that every service has. Each service adds its own in a subclass."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True)

    serves_services: ClassVar[bool] = True
    """Whether other services call this one."""

    listen: str = Field(default="127.0.0.1:0", description="host:port to serve on; port 0: a free port, which is printed")
    advertise: str = Field(
        default="", description="host:port at which others reach this process; empty: `listen`, if that is of one host"
    )
    insecure: bool = Field(
        default=False,
        description="allow `listen` on an address that other machines reach without TLS and tokens: anybody may then write",
    )
    tls_cert: str = Field(default="", description="PEM file of this server's certificate chain; read again when it changes")
    tls_key: str = Field(default="", description="PEM file of its private key")
    tls_ca: str = Field(
        default="", description="PEM file of the authority that signed the other services' certificates; empty: no TLS to them"
    )
    access: str = Field(
        default="",
        description="TOML file of tokens and roles (`headgate access`, docs/operations.md); without it every client is "
        '"anonymous" and may do everything',
    )
    access_reload: Duration = Field(
        default=2.0,
        gt=0,
        description="how often the access file is read again; within this time a token that was revoked or has expired ends its "
        "open channels. Shorter: sooner, for one small read each time",
    )
    refusals: float = Field(
        default=50,
        gt=0,
        le=1_000_000,
        description="how many calls of one principal are refused a second by one process, and as many at once; more wait. Of all "
        "callers without an identity together as many. Of creations of tables a tenth as many; more are CODE_OVERLOADED. Of "
        "opens at a writer twice as many, refused or not. Higher: each refusal takes up to 1 ms of the event loop from all "
        "callers, that of a creation up to 30 ms of the process",
    )
    jwt_issuer: str = Field(
        default="",
        description="https:// address of the issuer of signed tokens (OpenID Connect), as their claim iss has it; empty: none "
        "are taken. Its keys are fetched in the background. Wants `jwt_audience` and `access`, whose roles count",
    )
    jwt_audience: str = Field(default="", description="what the claim aud has to name: this cluster, as the issuer knows it")
    jwt_keys: str = Field(
        default="", description="https:// address of the issuer's key set (JWKS); empty: its discovery document says where"
    )
    jwt_refresh: Duration = Field(
        default=300.0,
        ge=10,
        description="how often the issuer's keys are fetched, besides once a token names an unknown one (every 10s at most); "
        "within this time a withdrawn key verifies nothing more. Shorter: sooner, for one small request each time",
    )
    jwt_principal: str = Field(default="sub", min_length=1, description="the claim that names the principal")
    jwt_groups: str = Field(
        default="groups",
        description="the claim that lists the groups, to which roles of the access file refer; a dot leads inwards",
    )
    jwt_prefix: str = Field(
        default="jwt:",
        description="stands before principals and groups of signed tokens in the access file. Empty: a user who chooses a name "
        "at the issuer can take that of a principal of the file",
    )
    client_ca: str = Field(
        default="",
        description="PEM file of authorities: `listen` demands a certificate of theirs from each client, and its one SPIFFE id, "
        "else its one DNS name, is the principal `cert:NAME` of `access`, unless a token comes, too; read again when it changes. "
        "Wants `cluster_listen`, as services have other certificates, and `health_listen` for probes. Each call costs 15 us "
        "more. Empty: none is asked for, and clients use tokens",
    )
    audit_log: str = Field(
        default="stderr",
        description="where lines go about calls that change something and those that are refused, with `access`: stderr, none, "
        "or a file, which may be moved away at any time",
    )
    cluster_token: SecretStr = Field(
        default=SecretStr(""),
        description="bearer token of the services for each other; from the environment or the file, never as a flag",
    )
    cluster_listen: str = Field(
        default="",
        description="host:port on which other services are served, with certificates on both sides; empty: `listen`, with "
        "cluster_token or, on this machine, without credentials",
    )
    cluster_advertise: str = Field(
        default="",
        description="host:port at which other services reach `cluster_listen`; empty: the same, if that is of one host",
    )
    cluster_cert: str = Field(
        default="",
        description="PEM file of the certificate chain that this service shows to others, with the DNS name SERVICE.DOMAIN: "
        "coordinator, writer or compactor, and cluster_domain; read again when it changes, like the next two",
    )
    cluster_key: str = Field(default="", description="PEM file of its private key")
    cluster_ca: str = Field(
        default="", description="PEM file of the authorities that sign services' certificates, and no others'"
    )
    cluster_domain: str = Field(
        default="headgate.internal", description="the DOMAIN in services' certificates; need not be known to any DNS server"
    )
    metrics_listen: LocalAddress = Field(
        default="",
        description="where Prometheus reads metrics, plain HTTP without a password: a port, which only this machine reaches, or "
        "host:port, as 0.0.0.0:9090 for everybody; empty: none",
    )
    health_listen: LocalAddress = Field(
        default="",
        description="where health checks are answered without TLS, besides `listen`, and nothing else is: for probes that cannot "
        "do TLS, as Kubernetes's. gRPC health: service live, the process answers; no name, it is ready. A port, which only this "
        "machine reaches, or host:port; empty: none",
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="console: text for people; json: one object per line"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="the lowest level that is logged")

    @model_validator(mode="after")
    def _secrets_are_at_their_place(self) -> Self:
        """A PEM file's content in the place of its path would be in the error that no such file exists; a token that cannot be
        a header, in gRPC's.
        """
        for name in type(self).model_fields:
            if isinstance(value := getattr(self, name), str) and is_pem(value):
                raise ValueError(f"{name} is the content of a PEM file: give the file's path")
        if not is_header(self.cluster_token.get_secret_value()):
            raise ValueError("cluster_token: want visible ASCII characters without spaces; is there a line's end?")
        return self

    @model_validator(mode="after")
    def _is_safe(self) -> Self:
        """Safe by default: a service that other machines can reach has TLS and tokens, or ``insecure`` is set."""
        for name in ("listen", "advertise", "metrics_listen", "health_listen", "cluster_listen", "cluster_advertise"):
            if value := getattr(self, name):
                Address.parse(value)
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ValueError("tls_cert and tls_key belong together: give both or none")
        self._check_cluster()
        self._check_issuer()
        if self.client_ca and not (self.tls_cert and self.access and self.cluster_listen):
            raise ValueError("client_ca wants tls_cert, access, whose roles count, and cluster_listen: services are no clients")
        guarded = self.tls_cert and self.access
        if not (Address.parse(self.listen).is_loopback or guarded or self.insecure):
            raise ValueError(
                f"others can reach listen={self.listen}: set tls_cert, tls_key, access and cluster_cert or cluster_token, "
                "or insecure"
            )
        self._check_advertised("listen", "advertise")
        self._check_advertised("cluster_listen", "cluster_advertise")
        return self

    def _check_advertised(self, listen: str, advertise: str) -> None:
        """Others would take an address of every machine for their own, and services of two machines one name."""
        shown = getattr(self, advertise) or getattr(self, listen)
        if shown and Address.parse(shown).is_wildcard:
            raise ValueError(
                f"{shown} is an address of every machine: set {advertise} to the host:port at which others reach this one"
            )

    def _check_cluster(self) -> None:
        """Services know each other by certificates, or by a token that never leaves the machine in plaintext."""
        files = (self.cluster_cert, self.cluster_key, self.cluster_ca)
        if any(files) and not all(files):
            raise ValueError("cluster_cert, cluster_key and cluster_ca belong together: give all or none")
        if self.cluster_cert and self.cluster_token:
            raise ValueError("cluster_token and cluster_cert: services show either the one or the other; leave cluster_token out")
        if self.serves_services and bool(self.cluster_cert) != bool(self.cluster_listen):
            raise ValueError("cluster_listen and cluster_cert belong together: other services are served there, by certificates")
        if self.access and not (self.cluster_token or self.cluster_cert):
            raise ValueError("access without cluster_cert or cluster_token: the services could not talk to each other")
        if self.cluster_token and not (self.tls_cert or Address.parse(self.listen).is_loopback):
            raise ValueError(
                f"cluster_token would be sent to listen={self.listen} in plaintext: set cluster_listen, cluster_cert, "
                "cluster_key and cluster_ca instead, or tls_cert and tls_key"
            )

    def _check_issuer(self) -> None:
        if not self.jwt_issuer:
            return
        if not (self.jwt_audience and self.access):
            raise ValueError("jwt_issuer wants jwt_audience, or tokens for others would be taken, and access, whose roles count")
        for name in ("jwt_issuer", "jwt_keys"):
            if (value := getattr(self, name)) and not is_safe_url(value):
                raise ValueError(f"{name} is no https:// address; http:// only goes on this machine")

    def advertised(self, bound: str) -> str:
        """Returns the address for others: ``advertise``, or else ``bound``, the server's. Port 0 becomes the bound port."""
        return _advertised(self.advertise, bound)

    def cluster_advertised(self, bound: str) -> str:
        """Returns the same for other services: ``cluster_advertise``, where they have a port of their own."""
        return _advertised(self.cluster_advertise, bound) if self.cluster_listen else self.advertised(bound)


def _advertised(advertise: str, bound: str) -> str:
    if not advertise:
        return bound
    address = Address.parse(advertise)
    return str(address if address.port else address._replace(port=Address.parse(bound).port))


_Settings = TypeVar("_Settings", bound=ServiceSettings)


def load_settings(cls: type[_Settings], argv: Sequence[str], *, prog: str, about: str) -> _Settings:
    """Reads the settings: flags > environment (``HEADGATE_*``) > the TOML file of ``--config`` > defaults.

    ``--help`` prints every setting and exits with 0. For a wrong setting it prints which and what would be right, and exits with
    2.
    """
    parser = flags_of(cls.model_fields, PREFIX, prog, about)
    flags = vars(parser.parse_args(list(argv)))
    for name, value in flags.items():
        if name in cls.model_fields and (secret := _secret_in(cls.model_fields[name], value)):
            flag, elsewhere = f"--{name.replace('_', '-')}", f"{PREFIX}{name.upper()} or the file of --config"
            parser.exit(2, f"{prog}: {flag}: other users can read flags: give {secret} in {elsewhere}\n")
    path = flags.pop("config", None) or os.environ.get(f"{PREFIX}CONFIG")
    try:
        values = {**_from_file(path), **EnvSettingsSource(cls)(), **flags}
        return cls(**values)
    except ValidationError as e:
        parser.exit(2, "".join(f"{prog}: {_sentence(error)}\n" for error in e.errors()) + f"{prog}: --help lists the settings\n")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        parser.exit(2, f"{prog}: --config {path}: {e}\n")
    raise AssertionError("parser.exit returned")


def _secret_in(field: FieldInfo, value: object) -> str:
    """What in a flag is secret, in words that do not repeat it; "": nothing."""
    if field.annotation is SecretStr:
        return "it"
    if not isinstance(value, str):
        return ""
    options = _options(value) if is_named_values(field.metadata) else {}
    if found := [name for name, text in options.items() if is_secret_option(name) or holds_secret(text)]:
        return found[0]
    return "the password" if not options and holds_secret(value) else ""


def _options(value: str) -> Mapping[str, str]:
    try:
        found = named_values(value)
    except ValueError:
        return {}
    return {name: str(text) for name, text in found.items()} if isinstance(found, dict) else {}


def _from_file(path: str | None) -> Mapping[str, object]:
    return tomllib.loads(Path(path).read_text(encoding="utf-8")) if path else {}


def _sentence(error: ErrorDetails) -> str:
    """Returns one finding of pydantic, in terms of the command line."""
    place = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"--{place.replace('_', '-')}: {message}" if place else message
