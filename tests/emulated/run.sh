#!/usr/bin/env bash
# The tests of netkit-kernels on instruction sets that this machine has not: NEON with and without dot products under
# QEMU, WebAssembly with and without vectors in Node.js.
#
#   tests/emulated/run.sh [cortex-a53] [cortex-a76] [wasm] [wasm-simd128]
#
# Without arguments all of them. A set that a machine is there for and that its run does not find fails the run.
# CASES=1 tries as many random cases as an unemulated run; the default is an eighth.
#
# The standard library is rustup's where the target is installed, else it is built from the source that comes with
# Debian's compiler (packages rustc-web and rust-web-src). Further packages: qemu-user gcc-aarch64-linux-gnu
# libc6-dev-arm64-cross nodejs wasi-libc lld.
set -euo pipefail
cd "$(dirname "$0")/../.."

source_compiler="${NETKIT_SOURCE_RUSTC:-/usr/bin/rustc}"
export NETKIT_RANDOM_SHARE="${CASES:-8}"
# Vectors are what is tested, not inlining over crates; and there is nothing to debug here.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_INCREMENTAL=false
export CARGO_TERM_COLOR=never
unset RUSTC RUSTFLAGS CARGO_ENCODED_RUSTFLAGS

installed() {
    [ -d "$(rustc --print target-libdir --target "$1" 2>/dev/null)" ]
}

# run NAME TRIPLE SET RUSTFLAGS RUNNER: tests the kernels of one instruction set
run() {
    local name="$1" triple="$2" required="$3" flags="$4" runner="$5"
    local arguments=()
    local environment=("NETKIT_REQUIRE_ISA=$required" "NETKIT_ONLY_ISA=$required" "NETKIT_RUNNER=$runner")
    if ! installed "$triple"; then
        if [ ! -x "$source_compiler" ]; then
            echo "error: no library for $triple: rustup target add $triple, or install rustc-web and rust-web-src" >&2
            exit 1
        fi
        arguments+=(-Zbuild-std=std,panic_abort)
        environment+=("RUSTC=$source_compiler" RUSTC_BOOTSTRAP=1)
        flags+=" $wasi"
    fi
    local variable="CARGO_TARGET_${triple//-/_}_RUNNER"
    environment+=("${variable^^}=$runner" "RUSTFLAGS=$flags" "CARGO_TARGET_DIR=target/emulated/$name")
    local start=$SECONDS
    env "${environment[@]}" cargo test -q --release --target "$triple" "${arguments[@]}" \
        -p netkit-kernels --test kernels --no-run
    local built=$SECONDS
    env "${environment[@]}" cargo test -q --release --target "$triple" "${arguments[@]}" \
        -p netkit-kernels --test kernels
    echo "built in $((built - start)) s, ran in $((SECONDS - built)) s"
}

linker() {
    local bundled
    bundled="$(rustc --print sysroot)/lib/rustlib/$(rustc --print host-tuple)/bin/rust-lld"
    if [ -x "$bundled" ]; then echo "$bundled"; else command -v ld.lld; fi
}

machines=("$@")
[ ${#machines[@]} -gt 0 ] || machines=(cortex-a53 cortex-a76 wasm wasm-simd128)
for machine in "${machines[@]}"; do
    echo "-- kernels on $machine"
    wasi=""
    case "$machine" in
    cortex-*)
        # Static and at fixed addresses: the target's libraries are not needed to run.
        flags="-Ctarget-feature=+crt-static -Crelocation-model=static -Clinker=aarch64-linux-gnu-gcc"
        required=neon
        [ "$machine" = cortex-a53 ] || required=dotprod
        run aarch64 aarch64-unknown-linux-gnu "$required" "$flags" "qemu-aarch64 -cpu $machine"
        ;;
    wasm | wasm-simd128)
        required=scalar flags=""
        [ "$machine" = wasm ] || required=simd128 flags="-Ctarget-feature=+simd128"
        # rustup's library for WASI comes with a C library, the source with none: Debian's.
        wasi="-Clinker=$(linker) -Clink-self-contained=no -L/usr/lib/wasm32-wasi"
        wasi+=" -Clink-arg=/usr/lib/wasm32-wasi/crt1-command.o -Clink-arg=-lc"
        # The harness names functions of threads, which that library lacks, and never starts one: they become traps.
        wasi+=" -Clink-arg=--unresolved-symbols=ignore-all"
        run "$machine" wasm32-wasip1 "$required" "$flags" "node --no-warnings ../tests/emulated/wasi.js"
        ;;
    *)
        echo "error: no machine $machine" >&2
        exit 2
        ;;
    esac
done
