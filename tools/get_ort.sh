#!/bin/sh
# get_ort.sh [FOLDER]: fetches ONNX Runtime's library from npm into FOLDER (default build/ort) and prints
# its path, which NORI_ORT_LIBRARY may then hold. Nothing of the package is run.
set -eu
folder=${1:-$(dirname "$0")/../build/ort}
case $(uname -m) in
x86_64) arch=x64 ;;
aarch64) arch=arm64 ;;
*) echo "get_ort.sh: npm has no ONNX Runtime for $(uname -m)" >&2; exit 1 ;;
esac
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
if [ ! -d "$folder/node_modules/onnxruntime-node" ]; then
    command -v npm > /dev/null || { echo "get_ort.sh: npm is not installed" >&2; exit 1; }
    (cd "$folder" && npm install --ignore-scripts --no-audit --no-fund --prefix . onnxruntime-node >&2)
fi
library=$(find "$folder/node_modules/onnxruntime-node/bin" -path "*/linux/$arch/libonnxruntime.so*" | head -n 1)
[ -n "$library" ] || { echo "get_ort.sh: the package has no library for linux/$arch" >&2; exit 1; }
echo "$library"
