"""The settings of a compactor."""

from typing import Annotated

from pydantic import Field, model_validator

from headgate_runtime.settings import ServiceSettings
from headgate_runtime.values import Address, ByteSize, Duration, NamedValues, Words


class CompactorSettings(ServiceSettings):
    """At ``listen`` a compactor serves health alone: it calls coordinators, and nothing calls it."""

    serves_services = False

    coordinator: Words = Field(
        [], description="host:port of one or more coordinators, separated by commas; the others are found through them"
    )
    store: str = Field(
        "",
        description="root below which all tables lie that this process opens, the same as the coordinators'; an order for a "
        "table elsewhere is refused. Empty: whatever a coordinator names is opened, with this process's rights",
    )
    storage_options: NamedValues = Field(
        default_factory=dict,
        repr=False,
        description="settings of the object store as name=value,… (S3: endpoint, region, access_key_id, …); what is left out "
        "comes from AWS_*, GOOGLE_* or AZURE_*; docs/operations.md has the credentials of each",
    )
    operations: Annotated[int, Field(ge=1, le=64)] = Field(
        1,
        description="file slices that are merged at a time; each keeps a core busy and takes memory for its logs. More processes "
        "do the same, and fewer operations are lost with one that runs out of memory",
    )
    spark_master: str = Field(
        "",
        description="Spark cluster for the largest operations, as spark://HOST:PORT or k8s://…; its executors need "
        "headgate-compactor and the store. Each operation is a job of one task, so operations is how many run at a time. Empty: "
        "all are done here. Needs the extra headgate-compactor[spark] and Java",
    )
    spark_above: ByteSize = Field(
        1 << 30,
        ge=0,
        description="bytes of base and log files above which an operation goes to spark_master. Less: more of them pay some "
        "seconds for a job; more: this process is busy with larger ones for longer",
    )
    spark_conf: NamedValues = Field(
        default_factory=dict, description="Spark's own settings as name=value,… (spark.executor.memory=4g)"
    )
    start_timeout: Duration = Field(
        0.0,
        ge=0,
        description="how long coordinators may refuse this process, which has just started, for its token, kind or version. "
        "Then it ends with the reason, for whatever restarts it: the chart sets 60s, so that kubectl describe shows the reason. "
        "0: it waits as long as it takes, and its log says for what. A coordinator that cannot be reached is waited for in any "
        "case",
    )
    drain_timeout: Duration = Field(
        10.0,
        description="after SIGTERM: how long operations may go on before they are returned, and begun anew elsewhere. Higher: "
        "less work is lost",
    )

    @model_validator(mode="after")
    def _fits(self) -> "CompactorSettings":
        if not self.coordinator:
            raise ValueError("--coordinator: name at least one, host:port")
        for address in self.coordinator:
            Address.parse(address)
        return self
