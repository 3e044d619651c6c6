#!/bin/sh
# The main job on the bundled model: what it is, whether it is right, what it sees, how fast it is.
set -eu
nori=$1
here=$(dirname "$0")
say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] || say() { printf '\n%s\n' "$1"; }

say "1. What the model holds (nori inspect)"
"$nori" inspect "$here/digits.onnx"
say "2. Is it valid? (nori check)"
"$nori" check "$here/digits.onnx"
say "3. Does nori agree with the framework it was trained in? (nori run --test-data)"
"$nori" run "$here/digits.onnx" --test-data "$here/test_data_set_0" --atol 1e-4 --rtol 1e-4
say "4. Handwritten digits it has never seen (nori run PICTURE --labels)"
right=0
all=0
for picture in "$here"/pictures/*.png; do
    name=$(basename "$picture" .png)
    best=$("$nori" run "$here/digits.onnx" "$picture" --labels "$here/labels.txt" --top 1 | sed -n 2p)
    seen=$(echo "$best" | awk '{print $1}')
    all=$((all + 1))
    if [ "$seen" = "${name%%_*}" ]; then
        right=$((right + 1))
        mark=
    else
        mark="   <- wrong"
    fi
    printf '  %-8s is seen as %s%s\n' "$name" "$best" "$mark"
done
echo "  $right of $all right"
say "5. How fast is it here? (nori bench)"
"$nori" bench "$here/digits.onnx" --runs 100
say "Next: nori run your-model.onnx, or nori --help"
