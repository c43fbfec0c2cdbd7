#!/bin/bash
# run_same_bytes.sh [install | deb]: builds the last commit twice and compares what leaves the two builds: the
# files of `make install` and `make install-debug` and the release's archive, or the packages of `make deb`.
#
# The clones lie in folders of other names and depths and are built one after the other, with one job and
# with several, in other time zones and locales. The second compiles everything itself; the first may
# take objects from a compiler cache, which then came from a third folder.
set -eu
cd "$(dirname "$0")/../.."
what=${1:-install}
git rev-parse HEAD >/dev/null 2>&1 || {
    echo "same-bytes: needs a git checkout, to build a commit twice"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
base=$PWD/build/same-$what
rm -rf "$base" && mkdir -p "$base/a" "$base/b/in/a-deeper-folder"
first=$base/a/tree second=$base/b/in/a-deeper-folder/ort-tools.of.somebody
passed=0 failed=0

build() { # build FOLDER JOBS OUT ENVIRONMENT...
    local tree=$1 jobs=$2 out=$3
    shift 3
    git clone -q --no-local . "$tree"
    mkdir -p "$out"
    (
        cd "$tree"
        case $what in
        deb) env "$@" make -s deb && cp build/deb/*.deb build/deb/*.dsc build/deb/*.tar.* "$out/" ;;
        *)
            env "$@" make -s -j"$jobs" all &&
                env "$@" make -s install install-debug dist DESTDIR="$out/installed" &&
                cp build/dist/*.tar.gz "$out/"
            ;;
        esac
    ) >"$out.log" 2>&1 || {
        tail -n 5 "$out.log"
        echo "not ok the build of $tree ($out.log)"
        echo "0 passed, 1 failed, 0 skipped"
        exit 1
    }
}

facts() { # facts FOLDER: mode, digest and name of each file, target of each link
    (cd "$1" && find . -type f -printf '%m ' -exec sha256sum {} \; -o -type l -printf '%p -> %l\n' | LC_ALL=C sort -k3)
}

build "$first" 1 "$base/a/out" TZ=UTC LC_ALL=C
build "$second" "$(($(nproc) + 1))" "$base/b/out" TZ=Pacific/Auckland LC_ALL=C.UTF-8 CCACHE_DISABLE=1
facts "$base/a/out" >"$base/a.txt"
facts "$base/b/out" >"$base/b.txt"
while read -r line; do
    if grep -qxF -e "$line" "$base/b.txt"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "not ok differs: $line"
    fi
done <"$base/a.txt"
[ "$(wc -l <"$base/a.txt")" = "$(wc -l <"$base/b.txt")" ] || {
    failed=$((failed + 1))
    echo "not ok the second build has other files: $base/b.txt"
}
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
