#!/bin/sh
# run.sh [SECONDS [TARGET ...]]: builds the fuzz targets with clang and runs each for some seconds, one
# after another. What is learnt stays in build/fuzz/corpus, what breaks is put into build/fuzz/found.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
build=build/fuzz
cmake --preset fuzz >/dev/null
targets=${*:-$(ninja -C "$build" -t targets all | sed -n 's,^fuzz/fuzz_\([a-z]*\): CXX*_EXECUTABLE_LINKER.*,\1,p')}
programs=
for t in $targets; do
    programs="$programs fuzz_$t"
done
# shellcheck disable=SC2086
ninja -C "$build" --quiet nori $programs
ASAN_OPTIONS=detect_leaks=0 python3 fuzz/make_seeds.py --nori "$build/nori" --shared ../shared "$build/seeds"
failed=
for t in $targets; do
    mkdir -p "$build/corpus/$t" "$build/found/$t"
    echo "$t: $seconds seconds"
    ASAN_OPTIONS=allocator_may_return_null=1 "$build/fuzz/fuzz_$t" -max_total_time="$seconds" -timeout=25 \
        -rss_limit_mb=2560 -max_len=65536 -print_final_stats=1 -dict="$build/seeds/fuzz.dict" \
        -artifact_prefix="$build/found/$t/" "$build/corpus/$t" "$build/seeds/$t" \
        >"$build/found/$t.log" 2>&1 || failed="$failed $t"
    grep -E "stat::number_of_executed_units|^#.*DONE|SUMMARY|ERROR:" "$build/found/$t.log" || true
done
if [ -n "$failed" ]; then
    echo "found something:$failed (see $build/found)"
    exit 1
fi
