"""The access file of a cluster with one principal, which may do everything: what is made before people write one."""


def access_of_one(principal: str, digest: str) -> str:
    """``digest``: of its token. All programs share it, and a load takes a channel for each file: no default quota holds."""
    return f"""[tokens]
"{digest}" = {{ principal = "{principal}" }}

[[roles]]
principals = ["{principal}"]
may = ["admin"]
tables = ["*"]

[[quotas]]
principals = ["{principal}"]
channels = "unlimited"
"""
