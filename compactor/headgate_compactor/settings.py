"""The settings of a compactor."""

from typing import Annotated

from pydantic import Field, model_validator

from headgate_runtime.settings import ServiceSettings
from headgate_runtime.values import Address, Duration, NamedValues, Words


class CompactorSettings(ServiceSettings):
    """``listen`` serves health alone: compactors call coordinators, and serve no calls themselves."""

    coordinator: Words = Field(
        [], description="host:port of one or more coordinators, separated by commas; the others are found through them"
    )
    storage_options: NamedValues = Field(
        default_factory=dict,
        description="settings of the object store as name=value,… (S3: endpoint, region, access_key_id, …); what is left out "
        "comes from AWS_*, GOOGLE_* or AZURE_*; docs/operations.md has the credentials of each",
    )
    operations: Annotated[int, Field(ge=1, le=64)] = Field(
        1,
        description="file slices that are merged at a time; each keeps a core busy and takes memory for its logs. More processes "
        "do the same, and one that runs out of memory takes fewer operations with it",
    )
    drain_timeout: Duration = Field(
        10.0,
        description="after SIGTERM: how long operations may go on before they are given back and begun anew elsewhere; longer "
        "wastes less work",
    )

    @model_validator(mode="after")
    def _fits(self) -> "CompactorSettings":
        if not self.coordinator:
            raise ValueError("--coordinator: name at least one, host:port")
        for address in self.coordinator:
            Address.parse(address)
        return self
