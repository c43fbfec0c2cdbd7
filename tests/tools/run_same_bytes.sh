#!/bin/bash
# run_same_bytes.sh [install | deb]: builds the last commit here and in a fresh clone elsewhere, and compares what
# leaves the two builds: the files of `make install` and `make install-debug` and the release's archive, or
# the packages of `make deb`.
#
# The clone has a name of another length at another depth, and is built later, with another number of jobs, in
# another time zone and locale, by the compiler itself where the build here may have used a cache.
set -eu
cd "$(dirname "$0")/../.."
what=${1:-install}
git rev-parse HEAD >/dev/null 2>&1 || {
    echo "same-bytes: needs a git checkout, to build a commit twice"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
[ -z "$(git status --porcelain)" ] || {
    echo "same-bytes: what is not committed would be in one of the two builds: commit first"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}
base=$PWD/build/same-$what
clone=$base/a-deeper/folder/ort-tools.of.somebody
rm -rf "$base" && mkdir -p "$base/here" "$base/there"
git clone -q --no-local . "$clone"

build() { # build FOLDER JOBS OUT
    cd "$1"
    case $what in
    deb) make -s deb && cp build/deb/*.deb build/deb/*.dsc build/deb/*.tar.* "$3/" ;;
    *) make -s -j"$2" all && make -s install install-debug dist DESTDIR="$3/installed" && cp build/dist/*.tar.gz "$3/" ;;
    esac
}

facts() { # facts FOLDER: mode, digest and name of each file, target of each link
    (cd "$1" && find . -type f -printf '%m ' -exec sha256sum {} \; -o -type l -printf '%p -> %l\n' | LC_ALL=C sort -k3)
}

(build "$PWD" "$(nproc)" "$base/here") >"$base/here.log" 2>&1 &&
    (
        export TZ=Pacific/Auckland LC_ALL=C CCACHE_DISABLE=1
        build "$clone" "$(($(nproc) + 1))" "$base/there"
    ) >"$base/there.log" 2>&1 || {
    tail -n 5 "$base"/*.log
    echo "not ok a build failed ($base/here.log, $base/there.log)"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}
facts "$base/here" >"$base/here.txt"
facts "$base/there" >"$base/there.txt"
same=$(LC_ALL=C comm -12 <(LC_ALL=C sort "$base/here.txt") <(LC_ALL=C sort "$base/there.txt") | wc -l)
differ=$(LC_ALL=C comm -3 <(LC_ALL=C sort "$base/here.txt") <(LC_ALL=C sort "$base/there.txt"))
[ -z "$differ" ] || awk '{print "not ok differs: " $0}' <<<"$differ"
echo "$same passed, $(grep -c . <<<"$differ" || true) failed, 0 skipped"
[ -z "$differ" ] && [ "$same" -gt 0 ]
