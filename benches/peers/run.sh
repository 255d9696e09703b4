#!/bin/bash
# The whole peer comparison: environment, models, build, run. Arguments go to the program (`run.sh --help`).
#
# NETKIT_PEERS_VENV  a Python environment with the packages of requirements.txt; made in made/venv where unset
# NETKIT_PEERS_BUILD arguments for `cargo build`: `--no-default-features` leaves the engines written in Rust out, whose first
#                    build takes minutes, and `--features rten,burn` takes some of them in again
# NETKIT_PEERS_LAUNCH a command that the program is started with, such as `chrt -f 50`: on a busy machine nothing else then gets
#                    the processor in between
# NETKIT_PEERS_CPU   the processor everything is pinned to (the last one); "none" pins nothing
set -euo pipefail
cd "$(dirname "$0")"

venv=${NETKIT_PEERS_VENV:-made/venv}
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
# Cheap where everything is there already.
"$venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt

# The models are part of the program (netkit and microflow compile theirs in), so they come first. Written anew only
# when the generator changed: a new time stamp would rebuild.
stamp=$(cat generate/*.py requirements.txt | sha256sum)
if [ "$(cat made/models/stamp 2>/dev/null)" != "$stamp" ]; then
    "$venv/bin/python" -m generate made/models
    echo "$stamp" > made/models/stamp
fi

# Unquoted: several arguments.
# shellcheck disable=SC2086
cargo build --release ${NETKIT_PEERS_BUILD:-}

pin=()
cpu=${NETKIT_PEERS_CPU:-$(($(nproc) - 1))}
if [ "$cpu" != none ] && command -v taskset > /dev/null; then
    pin=(taskset -c "$cpu")
fi
# shellcheck disable=SC2086
exec "${pin[@]}" ${NETKIT_PEERS_LAUNCH:-} target/release/peers --python "$venv/bin/python" "$@"
