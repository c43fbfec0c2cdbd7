#!/bin/bash
# run_roots.sh [SUITE...]: the tree in fresh Debian systems (bookworm, trixie), as somebody meets it who has
# just installed them: README's first command, which installs what the build lacks, `make install`, a
# program by pkg-config against the shared library and against the archive, uninstall, which leaves nothing.
# ROOTS_TEST=1 adds `make test`. Needs root and debootstrap; roots are kept in build/roots.
#
# The mirror, and what apt and pip need to reach theirs, are taken from this machine.
set -u
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || {
    echo "roots: needs root and debootstrap (apt-get install debootstrap)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
[ $# -gt 0 ] || set -- bookworm trixie

step() { # step NAME COMMAND: in the root, without this machine's environment
    local start=$SECONDS
    if chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        bash -ec "cd /src/ort-tools; $2" >"build/roots/$suite-$1.log" 2>&1; then
        passed=$((passed + 1))
        echo "ok $suite: $1 ($((SECONDS - start)) s)"
    else
        failed=$((failed + 1))
        echo "not ok $suite: $1 (build/roots/$suite-$1.log)"
        tail -n 5 "build/roots/$suite-$1.log"
    fi
}

mkdir -p build/roots
for suite in "$@"; do
    root=$PWD/build/roots/$suite
    rm -rf "$root"
    debootstrap --variant=minbase --include=make,ca-certificates "$suite" "$root" "$mirror" \
        >"build/roots/$suite-debootstrap.log" 2>&1 || {
        echo "not ok $suite: debootstrap (build/roots/$suite-debootstrap.log)"
        failed=$((failed + 1))
        continue
    }
    cp /etc/apt/apt.conf.d/99* "$root/etc/apt/apt.conf.d/" 2>/dev/null
    cp -r /etc/ssl/certs/. "$root/etc/ssl/certs/" 2>/dev/null
    cp /etc/pip.conf /etc/resolv.conf "$root/etc/" 2>/dev/null
    mkdir -p "$root/src/ort-tools" "$root/dev" "$root/proc"
    git archive HEAD | tar -x -C "$root/src/ort-tools"
    [ ! -d "${MODELS:-../shared/models}" ] || {
        mkdir -p "$root/src/shared" && cp -r "${MODELS:-../shared/models}" "$root/src/shared/models"
    }
    mount --bind /dev "$root/dev" && mount -t proc proc "$root/proc"
    step demo "make demo"
    step install "find / -xdev -path /src -prune -o -print | LC_ALL=C sort >/tmp/before
        make install; make install-debug; ldconfig"
    step shared "cc \$(pkg-config --cflags ort) examples/run_digits.c -o /tmp/a \$(pkg-config --libs ort)
        ldd /tmp/a | grep libort.so.; /tmp/a models/digits.onnx models/images/digit_7_008.png"
    step archive "gcc -static-libgcc \$(pkg-config --cflags ort) examples/run_digits.c -o /tmp/b \
        -Wl,-Bstatic -lort -Wl,-Bdynamic \$(pkg-config --libs --static ort | sed 's/-lort//')
        ! ldd /tmp/b | grep libort; /tmp/b models/digits.onnx models/images/digit_7_008.png"
    step tools "cd /tmp; ort-inspect /src/ort-tools/models/digits.onnx --check
        ort-tensor /src/ort-tools/models/images/digit_7_008.png --gray --float -o - |
            ort-run /src/ort-tools/models/digits.onnx - | ort-tensor - --top 1"
    step uninstall "rm -f /tmp/a /tmp/b; make uninstall; ldconfig
        find / -xdev -path /src -prune -o -print | LC_ALL=C sort >/tmp/after
        ! comm -13 /tmp/before /tmp/after | grep -vE '^/tmp/|^/var/cache/ldconfig|^/root/.cache'"
    [ "${ROOTS_TEST:-}" = "" ] || step test "make test"
    umount "$root/proc" "$root/dev"
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
