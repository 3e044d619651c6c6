#!/bin/sh
# check_cuda.sh [BUILD [MODELS]]: the full check of the provider cuda on a machine with an NVIDIA device: every
# operator with and without recorded graphs and NVIDIA's libraries, ONNX's own cases (NORI_CASES, a folder
# of them), the networks of MODELS (index.tsv and a folder each), and what it takes against the cpu provider.
# Prints a table; exits 1 when something disagrees, 2 when there is no device.
# CUDA_OPTIONS (such as "lib=PATH,nvrtc=PATH") go behind "cuda:".
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/release}
models=${2:-$root/../shared/models}
more=${CUDA_OPTIONS:+,$CUDA_OPTIONS}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0

row() { # NAME COMMAND...: runs, prints a row, shows the end of what failed
    name=$1
    shift
    begun=$(date +%s)
    if "$@" >"$work/log" 2>&1; then
        result=passed
    else
        result=FAILED
        failed=1
    fi
    printf '%-34s %-8s %4d s\n' "$name" "$result" $(($(date +%s) - begun))
    if [ "$result" = FAILED ]; then
        tail -n 25 "$work/log" | sed 's/^/    /'
    fi
}

model=$root/examples/digits/digits.onnx
for candidate in "$root"/examples/*.onnx "$root"/examples/*/*.onnx; do
    if [ ! -f "$model" ] && [ -f "$candidate" ]; then
        model=$candidate
    fi
done
if ! "$build/nori" inspect "$model" --providers "cuda:costs=none$more,cpu" >"$work/log" 2>&1; then
    cat "$work/log"
    echo "no CUDA device can be used"
    exit 2
fi
"$build/nori" doctor | grep -A 2 '^  cuda ' || true
printf '%-34s %-8s %s\n' what result time

if [ ! -x "$build/tests/test_cuda_cases" ]; then
    echo "$build/tests/test_cuda_cases is missing: build it first"
    exit 2
fi
# As found (cuBLASLt and cuDNN where they are), then by own kernels alone.
for own in "" ",cublaslt=none,cudnn=none"; do
    for graphs in 0 1; do
        row "operators, graphs=$graphs${own:+, own kernels}" \
            env NORI_CUDA="cuda:costs=none,graphs=$graphs$own$more" "$build/tests/test_cuda_cases"
    done
    row "attention and chains${own:+, own kernels}" \
        env NORI_CUDA="cuda:costs=none$own$more" "$build/tests/test_cuda_joined"
done
cases=${NORI_CASES:-/usr/share/libonnx-testdata/data/node}
if [ -d "$cases" ] && [ -x "$build/tests/run_cases" ]; then # CUDA_OPTIONS do not reach these
    row "ONNX's cases" python3 "$root/tests/run_cases.py" --driver "$build/tests/run_cases" --list \
        --providers cuda:costs=none --threads 1 "$cases"
else
    echo "ONNX's cases are not run: $cases or $build/tests/run_cases is missing"
fi
if [ ! -f "$models/index.tsv" ]; then
    echo "networks are not checked: $models/index.tsv is missing"
    exit $failed
fi
for name in $(cut -f 1 "$models/index.tsv" | sed 1d); do
    if [ -f "$models/$name/model.onnx" ]; then
        row "$name" python3 "$root/tests/run_models.py" --nori "$build/nori" --models "$models" \
            --provider "cuda:costs=none$more,cpu" --only "$name" --jobs 1
    fi
done
echo "times against the cpu provider (two engines in one process, interleaved):"
for name in light_densenet121 yolox_nano vespa_tinybert_mlm st_mobilenetv2_035_128; do
    if [ -f "$models/$name/model.onnx" ]; then
        echo "$name"
        "$build/nori" bench "$models/$name/model.onnx" --provider "cuda:costs=none$more,cpu" --versus cpu |
            sed 's/^/    /'
    fi
done
exit $failed
