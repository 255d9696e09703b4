#!/usr/bin/env bash
# run.sh [FOLDER]: the tests of the CMSIS-NN backend on this machine, against the stand-in; or, given the folder of a real
# libcmsis-nn.a for this machine, those of them that make sense with it. The tests of the feature `parallel` run with them:
# compiling the kernels takes longer than either.
set -euo pipefail
cd "$(dirname "$0")/../.."
features=linked tests=(--test models --test refusals)
if [ $# -gt 0 ]; then
    CMSIS_NN_LIB_DIR="$(cd "$1" && pwd)"
else
    tests/cmsis_nn/stand_in.sh target/cmsis_nn
    CMSIS_NN_LIB_DIR="$PWD/target/cmsis_nn/host"
    features=stand-in tests+=(--test switches)
fi
export CMSIS_NN_LIB_DIR
# The same packages and features twice, so that the kernels are compiled once.
with=(-p netkit-cmsis-nn-tests -p netkit-kernels)
with+=(--features "netkit-cmsis-nn-tests/$features,netkit-kernels/cmsis-nn,netkit-kernels/parallel")
cargo test -q "${with[@]}" "${tests[@]}"
cargo test -q "${with[@]}" --lib --test kernels -- cmsis_nn s8 parallel
