#!/bin/sh
# Each public header compiles alone: as C11 by gcc and clang, as C++17 by g++ and clang++.
set -u
include=$(dirname "$0")/../include
failed=0
tried=0
for header in "$include"/nori/*.h; do
    name=nori/$(basename "$header")
    for compiler in gcc clang g++ clang++; do
        command -v $compiler >/dev/null || continue
        case $compiler in
            *++) language="-x c++ -std=c++17" ;;
            *) language="-x c -std=c11" ;;
        esac
        tried=$((tried + 1))
        # Twice, for the guard.
        # shellcheck disable=SC2086
        printf '#include <%s>\n#include <%s>\nint nori_test_nothing;\n' "$name" "$name" |
            $compiler $language -fsyntax-only -Wall -Wextra -Wpedantic -Wundef -Werror -I"$include" - ||
            { echo "FAILED: $name by $compiler"; failed=1; }
    done
done
for compiler in gcc clang g++ clang++; do
    command -v $compiler >/dev/null || echo "$compiler is not installed: headers not tried with it"
done
echo "$tried compilations"
[ "$tried" -gt 0 ] && [ "$failed" = 0 ]
