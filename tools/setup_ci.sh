#!/bin/bash
# What CI needs beyond `make test`: a second compiler, and zstd and the public test cases of ONNX.
set -eu
missing=
for p in clang zstd libonnx-testdata; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing
