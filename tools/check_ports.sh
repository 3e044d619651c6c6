#!/bin/bash
# check_ports.sh ARCH: builds nori for another architecture without optional libraries and runs its fast tests
# in qemu-user. armhf: size_t of 32 bits, strict alignment; s390x: numbers the other way round. What it needs
# is in cmake/toolchains/ARCH-linux.cmake; without it exit status 77 and a line that says what is missing.
set -u
cd "$(dirname "$0")/.."
case ${1:-} in
armhf) compiler=arm-linux-gnueabihf-gcc qemu=qemu-arm ;;
s390x) compiler=s390x-linux-gnu-gcc qemu=qemu-s390x ;;
*) echo "check_ports: armhf or s390x was expected" >&2; exit 2 ;;
esac
arch=$1
lacking=
for program in "$compiler" "$qemu"; do
    command -v "$program" >/dev/null || lacking="$lacking $program"
done
for package in libnanopb-dev libcmocka-dev; do
    dpkg-query -W -f='${Status}' "$package:$arch" 2>/dev/null | grep -q 'install ok' || lacking="$lacking $package:$arch"
done
if [ -n "$lacking" ]; then
    echo "check_ports: skipped, missing:$lacking (cmake/toolchains/$arch-linux.cmake says how to get them)"
    exit 77
fi
cmake --preset "$arch" >/dev/null && ninja -C "build/$arch" --quiet || exit 1
# An emulator takes some fifty times as long: of long lists every seventh case, and half an hour for a test.
# Left out: the command's tests, a process a call, which mind the time it takes. cuda and symbols call this
# machine's compiler and tools.
slow='command_.*|text_command'
foreign='cuda.*|symbols|headers|schema_fresh'
export NORI_TEST_EVERY=7
ctest --test-dir "build/$arch" -L fast -E "^($slow|$foreign)\$" -j"$(nproc)" --quiet \
    -O "build/$arch/tests.log" || { grep -aE 'Failed|Timeout|Not Run' "build/$arch/tests.log"; exit 1; }
grep -a 'tests passed' "build/$arch/tests.log"
