#!/bin/sh
# Create build/venv with the Python packages of tests/requirements.txt, pinned by version and hash.
#
# usage: tests/tools/setup_venv.sh [--bench | --parity | --optimize | --quant | --nncf | --clients | --recipes]
#
# --parity and so on: those of requirements-parity.txt and so on beside the first, in
# build/venv-parity and so on.
# --bench: those of tests/bench/peers/*.txt, each peer for itself, in build/venv-bench. A peer that
# can't be had here is named on stderr and left out; .stamp-NAME in the folder says which are there.
#
# Does nothing when the stamps in the folder match the requirements. Exit status: 0 ready, 3 the
# packages can't be had here (no network, no Python 3.11, no venv module; callers skip and say so),
# 1 anything else, a hash that differs among them.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/build/venv
files=$root/tests/requirements.txt
peers=
case "${1:-}" in
--bench)
    venv=$root/build/venv-bench
    peers=$(ls "$root"/tests/bench/peers/*.txt)
    ;;
--parity | --optimize | --quant | --nncf | --clients | --recipes)
    venv=$root/build/venv-${1#--}
    files="$files $root/tests/requirements-${1#--}.txt"
    ;;
esac
name=build/${venv##*/}
log=$root/build/venv.log

# shellcheck disable=SC2086
sum=$(cat $files | sha256sum | cut -d' ' -f1)

current() { # current STAMP SUM
    [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]
}

make_venv() {
    python=
    for candidate in python3.11 /usr/bin/python3 python3; do
        if command -v "$candidate" >/dev/null 2>&1 &&
           "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
            python=$candidate
            break
        fi
    done
    if [ -z "$python" ]; then
        echo "setup_venv: no Python 3.11 here, for which the pinned packages are (Debian 12 has it)" >&2
        return 3
    fi
    [ ! -x "$venv/bin/pip" ] || return 0
    echo "setup_venv: making $name with $python" >&2
    mkdir -p "$root/build"
    if ! "$python" -m venv "$venv" >"$log" 2>&1; then
        rm -rf "$venv"
        echo "setup_venv: python -m venv failed: apt-get install python3-venv (build/venv.log)" >&2
        return 3
    fi
}

install() { # install FILE: its packages; the status is this script's
    echo "setup_venv: installing $(grep -c == "$1") packages of ${1#"$root"/} from PyPI" >&2
    if "$venv/bin/pip" install --disable-pip-version-check --no-input --quiet --no-deps \
       --only-binary :all: --require-hashes --retries 1 --timeout 20 -r "$1" >"$log" 2>&1; then
        return 0
    fi
    if grep -qiE 'DO NOT MATCH|hash' "$log"; then
        echo "setup_venv: a package does not have its pinned hash (build/venv.log)" >&2
        return 1
    fi
    if grep -qiE 'connection|resolve|network|timed out|no matching distribution|proxy' "$log"; then
        echo "setup_venv: PyPI can't be reached, or lacks it (build/venv.log)" >&2
        return 3
    fi
    tail -n 3 "$log" >&2
    return 1
}

install_peer() { # install_peer FILE: the packages, and what NAME.sh beside the file builds
    install "$1" || return
    [ ! -f "${1%.txt}.sh" ] || sh "${1%.txt}.sh" "$venv"
}

if ! current "$venv/.stamp" "$sum" || [ ! -x "$venv/bin/python" ]; then
    make_venv || exit
    for file in $files; do
        install "$file" || exit
    done
    printf '%s\n' "$sum" >"$venv/.stamp"
    echo "setup_venv: $name is ready" >&2
fi

for file in $peers; do
    peer=$(basename "$file" .txt)
    stamp=$venv/.stamp-$peer
    sum=$(cat "$file" "${file%.txt}.sh" 2>/dev/null | sha256sum | cut -d' ' -f1)
    current "$stamp" "$sum" && continue
    rm -f "$stamp"
    if install_peer "$file"; then
        printf '%s\n' "$sum" >"$stamp"
    else
        echo "setup_venv: WITHOUT $peer, which can't be had here" >&2
    fi
done
