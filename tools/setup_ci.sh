#!/bin/sh
# What CI needs beyond `make test`: other compilers, what packages are made and read with, and zstd
# and the public test cases of ONNX.
exec "$(dirname "$0")/setup.sh" clang g++ dpkg-dev file groff-base zstd libonnx-testdata
