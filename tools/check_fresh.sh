#!/bin/bash
# check_fresh.sh [FOLDER]: proves the first two commands of README.md on a bare Debian 12. Makes one with
# debootstrap in FOLDER (which must not exist; default: a temporary one), clones this checkout's HEAD
# into it, runs `make run` and `make test` there as root, and removes it. Needs root and debootstrap.
#   NORI_MIRROR=URL   the Debian mirror; default: the one that apt uses here
#   KEEP=1            leaves FOLDER as it is for a look
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
suite=bookworm
fail() { echo "check_fresh: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "debootstrap and chroot need root: run this as root"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"

# apt's own answer to where it fetches from: comments and disabled files do not count, and both forms
# of source files do. The suite may be another one here; its archive holds this one too.
mirror=${NORI_MIRROR:-}
if [ -z "$mirror" ]; then
    targets=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages')
    mirror=$(awk -v s=$suite '$1 == s && $2 == "main" {print $3; exit}' <<<"$targets")
    [ -n "$mirror" ] || mirror=$(awk '$1 !~ /-/ && $2 == "main" {print $3; exit}' <<<"$targets")
fi
[ -n "$mirror" ] || fail "apt has no Debian archive here: set NORI_MIRROR=URL"

folder=${1:-}
if [ -n "$folder" ]; then
    [ ! -e "$folder" ] || fail "$folder exists: name a folder that can be made and removed"
    mkdir -p "$folder"
else
    folder=$(mktemp -d)
fi
folder=$(cd "$folder" && pwd)
chmod 755 "$folder"
bare=$folder/debian
log=$folder/log
leave() {
    local code=$?
    trap - EXIT
    for mounted in dev/pts proc; do
        if mountpoint -q "$bare/$mounted" && ! umount "$bare/$mounted"; then
            echo "check_fresh: $bare/$mounted stays mounted, $folder is left" >&2
            exit 1
        fi
    done
    if [ "${KEEP:-0}" = 1 ]; then
        echo "kept: $folder"
    else
        rm -rf --one-file-system "$folder"
    fi
    exit $code
}
trap leave EXIT
trap 'exit 130' INT TERM

failed=0
step() { # step NAME COMMAND...: runs it, and says how it went and how long it took
    local name=$1 start=$SECONDS
    shift
    if "$@" >"$log" 2>&1; then
        echo "ok      $name ($((SECONDS - start)) s)"
    else
        echo "FAILED  $name ($((SECONDS - start)) s); the end of its output:"
        tail -n 60 "$log"
        failed=1
        return 1
    fi
}
inside() { # inside USER COMMAND: as on a machine of its own, with nothing of this one's environment
    chroot --userspec="$1" "$bare" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        sh -c "cd /root/nori && $2"
}

make_bare() {
    local proxy
    proxy=$(apt-config shell p Acquire::http::Proxy | sed -n "s/^p='\(.*\)'$/\1/p")
    if [ -n "$proxy" ] && [ "$proxy" != DIRECT ]; then
        export http_proxy=$proxy
    fi
    debootstrap --variant=minbase --include=git,make,ca-certificates $suite "$bare" "$mirror"
    # The way to the mirror: names, proxy and other settings of fetching, passwords, certificates.
    cp -L /etc/resolv.conf /etc/hosts "$bare/etc/"
    apt-config dump | grep -E '^Acquire::[^ ]+ "[^"]+";$' | grep -v '^Acquire::IndexTargets' \
        >"$bare/etc/apt/apt.conf.d/90way" || true
    if [ -f /etc/apt/auth.conf ]; then
        cp /etc/apt/auth.conf "$bare/etc/apt/"
    fi
    cp -r /etc/apt/auth.conf.d/. "$bare/etc/apt/auth.conf.d/" 2>/dev/null || true
    if [ -n "$(find /usr/local/share/ca-certificates -type f 2>/dev/null)" ]; then
        cp -rL /usr/local/share/ca-certificates/. "$bare/usr/local/share/ca-certificates/"
        chroot "$bare" update-ca-certificates
    fi
    mount -t proc proc "$bare/proc"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$bare/dev/pts"
    ln -sf pts/ptmx "$bare/dev/ptmx"
}
make_clone() {
    git clone --quiet --no-hardlinks "$root" "$bare/root/nori"
    chmod 755 "$bare/root" # a user without rights looks in, too
}
# Without root and sudo, setup.sh must end with the one line that helps, and nothing installed.
refuse() {
    local out
    if out=$(inside nobody:nogroup tools/setup.sh 2>&1); then
        echo "$out"
        echo "setup.sh ended well without root, with packages missing"
        return 1
    fi
    echo "$out"
    grep -qx ' *apt-get update && apt-get install -y --no-install-recommends\( [a-z0-9.+-]*\)* gcc .*' <<<"$out"
}
step "bare Debian 12 ($suite, minbase)" make_bare
step "clone of $(git -C "$root" rev-parse --short HEAD)" make_clone
step "setup.sh without rights says what to run" refuse
step "make run" inside root:root "make run"
grep -E ' right$|^steady' "$log" | sed 's/^ */        /' || true
step "make test" inside root:root "make test"
grep 'tests passed' "$log" | sed 's/^ */        /' || true
step "nothing is left in the checkout" inside root:root "test -z \"\$(git status --porcelain)\""
[ $failed = 0 ]
