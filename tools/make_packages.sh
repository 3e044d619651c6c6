#!/bin/sh
# make_packages.sh BUILD: makes the Debian package and the archive of a build, and says how large they
# and what they carry are.
set -eu
build=$1
cpack --config "$build/CPackConfig.cmake" >"$build/package.log" 2>&1 || {
    cat "$build/package.log" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strip -o "$work/nori" "$build/nori"
strip -o "$work/libnori.so" "$build"/src/libnori.so.*.*.*
size() { printf '%9d bytes  %s\n' "$(stat -c %s "$1")" "$2"; }
size "$work/nori" "the command, stripped"
size "$work/libnori.so" "the shared library, stripped"
for file in $(sed -n 's/^CPack: - package: \(.*\) generated\.$/\1/p' "$build/package.log"); do
    size "$file" "${file#"$PWD"/}"
done
