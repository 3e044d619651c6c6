#!/bin/bash
# test_packages.sh BUILD: makes the packages of a build and looks into them: the .deb holds everything
# and states what it needs; the archive runs from where it is unpacked. 77: tools are missing.
set -euo pipefail
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
for tool in dpkg-deb dpkg-shlibdeps file; do
    command -v $tool >/dev/null || { echo "$tool is not installed: packages not tested"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
version=$("$build/nori" --version | cut -d' ' -f2)
cd "$build"
cpack -B "$work" >"$work/log" 2>&1 || { cat "$work/log"; fail cpack; }

deb=$work/nori_${version}_$(dpkg --print-architecture).deb
[ -s "$deb" ] || fail "no $(basename "$deb"): $(ls "$work")"
dpkg-deb -c "$deb" >"$work/list"
abi=${version%.*}
for path in bin/nori lib/libnori.a lib/libnori.so "lib/libnori.so.$abi" "lib/libnori.so.$version" \
    include/nori/nori.h include/nori/place.h include/nori/provider.h include/nori/tools.h \
    lib/cmake/nori/noriConfig.cmake lib/pkgconfig/nori.pc share/man/man1/nori.1 \
    share/bash-completion/completions/nori share/doc/nori/copyright; do
    grep -q " ./usr/$path\( ->.*\)\?$" "$work/list" || fail "the .deb has no /usr/$path"
done
if [ -e "$build/modules/nori-serve.so" ]; then
    for path in lib/nori/nori-serve.so lib/libnori_serve.a include/nori/serve.h lib/pkgconfig/nori_serve.pc; do
        grep -q " ./usr/$path$" "$work/list" || fail "the .deb has no /usr/$path"
    done
fi
if grep -v ' root/root ' "$work/list"; then
    fail "files of the .deb that are not root's"
fi
[ "$(dpkg-deb -f "$deb" Maintainer)" = "nori developers" ] || fail "maintainer: $(dpkg-deb -f "$deb" Maintainer)"
needs=$(dpkg-deb -f "$deb" Depends)
case $needs in
    *libc6*) echo "the .deb depends on $needs" ;;
    *) fail "the .deb depends on \"$needs\", without libc6" ;;
esac
# What its files link must be among what it depends on.
dpkg-deb -x "$deb" "$work/root"
for library in $(readelf -d "$work/root/usr/bin/nori" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
    owners=$(dpkg -S "*/$library" | cut -d: -f1 | sort -u)
    for owner in $owners; do
        case $needs in *"$owner"*) continue 2 ;; esac
    done
    fail "bin/nori needs $library, of ${owners:-no package}; the .deb depends on $needs"
done

archive=$(echo "$work"/nori-"$version"-*.tar.gz)
mkdir "$work/elsewhere"
tar -xzf "$archive" -C "$work/elsewhere"
top=$(echo "$work"/elsewhere/*)
[ "$("$top/bin/nori" --version)" = "nori $version" ] || fail "the archive's command does not run"
"$top/bin/nori" run "$root/examples/digits/digits.onnx" --test-data "$root/examples/digits/test_data_set_0" \
    --atol 1e-4 --rtol 1e-4 >/dev/null || fail "the archive's command does not run a model"
# shellcheck disable=SC2046
cc "$root/examples/embed/embed.c" $(PKG_CONFIG_PATH=$top/lib/pkgconfig pkg-config --cflags --libs nori) \
    -Wl,-rpath,"$top/lib" -o "$work/embed"
[ "$("$work/embed" "$root/examples/digits/digits.onnx" "$root/examples/digits/test_images.npy" 7)" = 7 ] ||
    fail "a program on the archive's library"
file "$top/bin/nori" "$top/lib/libnori.so.$version" | grep -c ', stripped' | grep -q 2 || fail "not stripped"
echo "both packages hold what they should: $(cd "$work" && du -k --apparent-size ./*.deb ./*.tar.gz | tr '\t\n' ' ;')"
