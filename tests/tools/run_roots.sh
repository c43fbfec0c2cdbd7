#!/bin/bash
# run_roots.sh [SUITE...]: the release's archive in fresh Debian systems (bookworm, trixie), as somebody
# meets it who has just installed them: README's first command, which installs what the build lacks,
# `make install`, programs by pkg-config against the shared library and against the archive, the tools,
# uninstall, which leaves nothing; the packages of `make deb` where they were made for that Debian.
# Compiled with WERROR=1: each Debian has a compiler of its own. ROOTS_TEST=1 adds `make test`, README's
# second command; ROOTS_CCACHE=1 compiles with ccache there, in this machine's cache; ROOTS_KEEP=1
# takes the roots, and what is built in them, as the last run left them. Needs root and debootstrap; the roots
# are in build/roots, or in ROOTS_DIR.
#
# The mirror, and what apt and pip need to reach theirs, are taken from this machine.
set -u
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0 skipped=0
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || {
    echo "roots: needs root and debootstrap (apt-get install debootstrap)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
[ $# -gt 0 ] || set -- bookworm trixie
dir=${ROOTS_DIR:-build/roots}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
tarball=$(ls build/dist/ort-tools-*.tar.gz)
here=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")

# A root is never removed while this machine's /dev is mounted in it.
leave() {
    for mounted in proc dev/pts dev src/ccache; do
        ! mountpoint -q "$1/$mounted" || umount "$1/$mounted" || umount -l "$1/$mounted" || exit 1
    done
}
trap 'for suite in "$@"; do leave "$dir/$suite"; done' EXIT
trap 'exit 1' INT TERM

inside() { # inside COMMAND: in the root, without this machine's environment
    chroot "$root" env -i HOME=/root LC_ALL=C.UTF-8 CCACHE_DIR=/src/ccache CCACHE_NOHASHDIR=1 WERROR="${WERROR-1}" \
        PATH=/usr/lib/ccache:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        DEBIAN_FRONTEND=noninteractive bash -ec "cd /src/ort-tools 2>/dev/null; $1"
}

step() { # step NAME COMMAND
    local start=$SECONDS
    if inside "$2" >"$dir/$suite-$1.log" 2>&1; then
        passed=$((passed + 1))
        echo "ok $suite: $1 ($((SECONDS - start)) s)"
    else
        failed=$((failed + 1))
        echo "not ok $suite: $1 ($dir/$suite-$1.log)"
        tail -n 5 "$dir/$suite-$1.log"
    fi
}

make_root() {
    leave "$root"
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase --include="make,ca-certificates${ROOTS_CCACHE:+,ccache}" "$suite" "$root" "$mirror" \
        >"$dir/$suite-debootstrap.log" 2>&1 || return
    cp /etc/apt/apt.conf.d/99* "$root/etc/apt/apt.conf.d/" 2>/dev/null
    cp -r /etc/ssl/certs/. "$root/etc/ssl/certs/" 2>/dev/null
    cp /etc/pip.conf /etc/resolv.conf "$root/etc/" 2>/dev/null
    mkdir -p "$root/src/ort-tools" "$root/dev" "$root/proc"
    tar -xf "$tarball" -C "$root/src/ort-tools" --strip-components=1
    if [ -d "${MODELS:-../shared/models}" ] && [ "${ROOTS_TEST:-}" ]; then
        mkdir -p "$root/src/shared" && cp -r "${MODELS:-../shared/models}" "$root/src/shared/models"
    fi
}

enter() { # mounts what the root needs of this machine
    if [ "${ROOTS_CCACHE:-}" ]; then
        mkdir -p "$root/src/ccache" && mount --bind "${CCACHE_DIR:-$HOME/.cache/ccache}" "$root/src/ccache" || return
    fi
    mount --bind /dev "$root/dev" && mount --bind /dev/pts "$root/dev/pts" && mount -t proc proc "$root/proc"
}

snapshot() { # snapshot NAME: all files of the root
    echo "find / -xdev -path /src -prune -o -path /tmp -prune -o -print | LC_ALL=C sort >/tmp/$1"
}
# What the machine's own upkeep writes, for any package, isn't ours to remove.
nothing_new="! LC_ALL=C comm -13 /tmp/before /tmp/after |
    grep -vE '^/var/(cache/(ldconfig|apt|debconf|man)|lib/(apt|dpkg|systemd))|^/var/log|^/root/.cache'"

shared="cc -Wall -Wextra -Werror \$(pkg-config --cflags ort) examples/run_digits.c -o /tmp/a \$(pkg-config --libs ort)
    ldd /tmp/a | grep libort.so.; /tmp/a models/digits.onnx models/images/digit_7_008.png"
archive="cc \$(pkg-config --cflags ort) examples/run_digits.c -o /tmp/b \
    -Wl,-Bstatic -lort -Wl,-Bdynamic \$(pkg-config --libs --static ort | sed 's/-lort//')
    ! ldd /tmp/b | grep libort; /tmp/b models/digits.onnx models/images/digit_7_008.png"
tools="cd /tmp; ort-inspect /src/ort-tools/models/digits.onnx --check
    ort-tensor /src/ort-tools/models/images/digit_7_008.png --gray --float -o - |
        ort-run /src/ort-tools/models/digits.onnx - | ort-tensor - --top 1"

install_steps() {
    step demo "make demo"
    step install "$(snapshot before); make install; make install-debug; ldconfig"
    step shared "$shared"
    step archive "$archive"
    step tools "$tools"
    step uninstall "rm -f /tmp/a /tmp/b; make uninstall; ldconfig; $(snapshot after); $nothing_new"
}

# As a user of the packages: what they depend on is apt's business.
deb_steps() {
    mkdir -p "$root/tmp/debs" && rm -f "$root"/tmp/debs/* && cp build/deb/*.deb "$root/tmp/debs/"
    step deb-install "rm -f /tmp/debs/*dbgsym*; apt-get update -q; apt-get install -y -q gcc libc6-dev pkg-config
        apt-get install -y -q --no-install-recommends --download-only /tmp/debs/*.deb
        $(snapshot before); apt-get install -y -q --no-install-recommends /tmp/debs/*.deb"
    step deb-shared "$shared"
    step deb-archive "$archive"
    step deb-tools "$tools"
    step deb-purge "apt-get purge -y -q ort-tools libort0 libort-dev; apt-get autoremove --purge -y -q; apt-get clean
        $(snapshot after); $nothing_new"
}

for suite in "$@"; do
    root=$dir/$suite
    { [ "${ROOTS_KEEP:-}" ] && [ -d "$root/src/ort-tools" ]; } || make_root || {
        echo "not ok $suite: debootstrap ($dir/$suite-debootstrap.log)"
        failed=$((failed + 1))
        continue
    }
    enter || exit 1
    install_steps
    echo "   $suite: $(inside 'gcc --version' | head -n 1), $(inside 'ldd --version' | head -n 1)"
    if [ "$suite" = "$here" ] && ls build/deb/*.deb >/dev/null 2>&1; then
        deb_steps
    else
        echo "skip $suite: packages (none were made here for it: make deb on $suite)"
        skipped=$((skipped + 1))
    fi
    [ "${ROOTS_TEST:-}" = "" ] || step test "make test"
    leave "$root"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
