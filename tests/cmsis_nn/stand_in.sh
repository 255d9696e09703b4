#!/bin/sh
# stand_in.sh FOLDER: compiles the stand-in for CMSIS-NN for the host and for Cortex-M, one folder each, as
# `firmware-runner --cmsis-nn FOLDER` looks for them.
set -eu
source="$(dirname "$0")/stand_in.c"
build() {
    name=$1 compiler=$2 archiver=$3
    shift 3
    mkdir -p "$folder/$name"
    "$compiler" -std=c99 -O2 -Wall -Wextra -Werror -ffunction-sections "$@" -c "$source" -o "$folder/$name/stand_in.o"
    rm -f "$folder/$name/libcmsis-nn.a"
    "$archiver" rcs "$folder/$name/libcmsis-nn.a" "$folder/$name/stand_in.o"
}
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
build host "${CC:-cc}" "${AR:-ar}"
if command -v arm-none-eabi-gcc >/dev/null; then
    arm() { build "$1" arm-none-eabi-gcc arm-none-eabi-ar -mthumb "$2" "$3"; }
    arm m3 -mcpu=cortex-m3 -mfloat-abi=soft
    arm m4 -mcpu=cortex-m4 -mfloat-abi=hard
    arm m55 -mcpu=cortex-m55 -mfloat-abi=hard
fi
