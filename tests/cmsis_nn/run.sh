#!/usr/bin/env bash
# run.sh [FOLDER]: the tests of the CMSIS-NN backend on this machine, against the stand-in; or, given the folder of a real
# libcmsis-nn.a for this machine, those of them that make sense with it.
set -euo pipefail
cd "$(dirname "$0")/../.."
features=linked
if [ $# -gt 0 ]; then
    CMSIS_NN_LIB_DIR="$(cd "$1" && pwd)"
else
    tests/cmsis_nn/stand_in.sh target/cmsis_nn
    CMSIS_NN_LIB_DIR="$PWD/target/cmsis_nn/host"
    features=stand-in
fi
export CMSIS_NN_LIB_DIR
cargo test -q -p netkit-cmsis-nn-tests --features "$features"
cargo test -q -p netkit-kernels --features cmsis-nn --lib --test kernels -- cmsis_nn s8
