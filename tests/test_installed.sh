#!/bin/bash
# test_installed.sh BUILD: installs a build into an empty prefix and uses what is there as a stranger
# would: the command, and examples/embed built by CMake (shared, static) and by pkg-config.
set -euo pipefail
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
digits=$root/examples/digits
# says PROGRAM: picture 7 is a seven, picture 13 a three (60 of each digit in turn).
says() {
    local seen
    for n in 7 13; do
        seen=$("$1" "$digits/digits.onnx" "$digits/test_images.npy" $n) || fail "$1 ends with an error"
        [ "$seen" = $((n % 10)) ] || fail "$1 takes picture $n for $seen"
    done
}
linked() { readelf -d "$1" | grep -c 'NEEDED.*libnori' || true; }

cmake --install "$build" --prefix "$work/first" >"$work/install.log"
# The prefix must not matter: what was installed is moved before it is used.
mv "$work/first" "$work/there"
there=$work/there
"$there/bin/nori" --version
[ -s "$there/share/man/man1/nori.1" ] || fail "no manual page"
[ -s "$there/share/bash-completion/completions/nori" ] || fail "no completion"
for header in "$root"/include/nori/*.h; do
    cmp "$header" "$there/include/nori/$(basename "$header")"
done
lib=$(dirname "$(find "$there" -name libnori.a)")
[ "$(readelf -d "$lib/libnori.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')" = "$(basename "$lib"/libnori.so.?.?)" ] ||
    fail "the library's SONAME is not the name of its file"
readelf -d "$lib/libnori.so" | grep -q NODELETE || fail "the library can be unloaded under its threads"

# Some linkers' defaults differ between compilers; users have cc.
for kind in shared static; do
    cmake -S "$root/examples/embed" -B "$work/$kind" -DCMAKE_PREFIX_PATH="$there" \
        -DNORI_STATIC=$([ $kind = static ] && echo ON || echo OFF) >"$work/$kind.log" 2>&1 &&
        cmake --build "$work/$kind" >>"$work/$kind.log" 2>&1 || { cat "$work/$kind.log"; fail "CMake, $kind"; }
    says "$work/$kind/embed"
    echo "CMake, $kind library: right"
done
[ "$(linked "$work/shared/embed")" = 1 ] || fail "nori::nori is not the shared library"
[ "$(linked "$work/static/embed")" = 0 ] || fail "nori::nori_static is not the static library"

# Models exported as part of a build, as nori_export of the package does it.
cmake -S "$root/examples/trace" -B "$work/trace" -DCMAKE_PREFIX_PATH="$there" >"$work/trace.log" 2>&1 &&
    cmake --build "$work/trace" >>"$work/trace.log" 2>&1 || { cat "$work/trace.log"; fail "nori_export"; }
for model in mlp residual transformer; do
    "$there/bin/nori" check "$work/trace/$model.onnx" >/dev/null || fail "$model.onnx is not valid"
done
before=$(stat -c %Y "$work/trace/mlp.onnx")
cmake --build "$work/trace" >>"$work/trace.log" 2>&1
[ "$before" = "$(stat -c %Y "$work/trace/mlp.onnx")" ] || fail "a model is exported again though nothing changed"
echo "nori_export: three models, traced once"

if ! command -v pkg-config >/dev/null; then
    echo "pkg-config is not installed: building by it not tested"
    exit 0
fi
export PKG_CONFIG_PATH=$lib/pkgconfig
[ "nori $(pkg-config --modversion nori)" = "$("$there/bin/nori" --version)" ] || fail "versions differ"
flags="-std=c11 -Wall -Wextra -Wpedantic -Werror"
# shellcheck disable=SC2046,SC2086
cc $flags "$root/examples/embed/embed.c" $(pkg-config --cflags --libs nori) -Wl,-rpath,"$lib" -o "$work/pc"
[ "$(linked "$work/pc")" = 1 ] || fail "pkg-config does not give the shared library"
says "$work/pc"
echo "pkg-config, shared library: right"
# shellcheck disable=SC2046,SC2086
cc $flags -static "$root/examples/embed/embed.c" $(pkg-config --static --cflags --libs nori) \
    -o "$work/pc-static" 2>"$work/static-pc.log" || { cat "$work/static-pc.log"; fail "pkg-config --static"; }
says "$work/pc-static"
echo "pkg-config, static program: right"

# The server as a library of its own.
if [ ! -e "$lib/libnori_serve.a" ]; then
    echo "no server was built: libnori_serve not tested"
    exit 0
fi
cat >"$work/serve.c" <<'END'
#include <nori/serve.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    nori_serve_options o;
    nori_server *server = NULL;
    nori_error err = {0};
    nori_serve_options_default(&o);
    o.port = 0;
    o.models = (const char *const *)&argv[1];
    o.model_count = (size_t)argc - 1;
    if (nori_serve_start(&o, &server, &err) || nori_serve_wait(server, -1, &err)) {
        fprintf(stderr, "%s\n", err.message);
    }
    printf("%s %d\n", nori_serve_address(server), nori_serve_ready(server));
    nori_serve_free(server);
    return 0;
}
END
# shellcheck disable=SC2046,SC2086
cc $flags "$work/serve.c" $(pkg-config --cflags --libs nori_serve) -Wl,-rpath,"$lib" -o "$work/serve"
case $("$work/serve" "$digits/digits.onnx") in
    "http://127.0.0.1:"*" 1") echo "pkg-config, a server in a program: right" ;;
    *) fail "a server in a program is not ready" ;;
esac
