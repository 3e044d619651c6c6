#!/bin/sh
# What CI needs beyond `make test`: other compilers, what packages are made and read with, zstd, and
# the libraries of the operator modules.
here=$(dirname "$0")
# shellcheck disable=SC2046
exec "$here/setup.sh" clang g++ dpkg-dev file groff-base zstd $(grep -v '^#' "$here/packages_all.txt")
