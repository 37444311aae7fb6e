"""Values of the chart for the acceptance: small, and quick to commit."""

from collections.abc import Mapping
from typing import Any

from k8s.outside_s3 import BUCKET, REGION
from k8s.settings import Settings

RELEASE = "hg"
STORE_SECRET, CLIENT_SECRET = "store", f"{RELEASE}-client"
CHECKPOINT_INTERVAL = "500ms"


def good_values(settings: Settings, endpoint: str, store: str = f"s3://{BUCKET}/lake") -> dict[str, Any]:
    """Of an installation on the S3 server at ``endpoint``, whose keys are in STORE_SECRET."""
    port = int(endpoint.rpartition(":")[2])
    return {
        "store": store,
        "storage": {"s3": {"endpoint": endpoint, "region": REGION, "allowHttp": True}, "existingSecret": STORE_SECRET},
        "image": image_values(settings.image),
        # CPU as the chart has it: while pods start, cores are shared by what each asks for, and everybody waits for a hand-over.
        "coordinator": {
            "settings": {
                "checkpoint_interval": CHECKPOINT_INTERVAL,
                "checkpoint_min_interval": "100ms",
                "service_interval": CHECKPOINT_INTERVAL,
            },
        },
        "writer": {"cpu": "300m"},
        "compactor": {"cpu": "50m"},
        "networkPolicy": {"storePorts": [port]},
    }


def image_values(image: str) -> Mapping[str, str]:
    """A name with a tag, as the chart wants it."""
    repository, _, tag = image.rpartition(":")
    return {"repository": repository, "tag": tag}
