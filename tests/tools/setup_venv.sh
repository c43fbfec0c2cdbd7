#!/bin/sh
# Create build/venv with the Python packages of tests/requirements.txt, pinned by version and hash.
#
# usage: tests/tools/setup_venv.sh [--bench | --parity | --optimize]
#
# --bench, --parity, --optimize: those of requirements-bench.txt and so on beside the first, in
# build/venv-bench and so on.
#
# Does nothing when the stamp in the folder matches the requirements. Exit status: 0 ready, 3 the
# packages can't be had here (no network, no Python 3.11, no venv module; callers skip and say so),
# 1 anything else, a hash that differs among them.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/build/venv
files=$root/tests/requirements.txt
stamp=$venv/.stamp
if [ "${1:-}" = --bench ] || [ "${1:-}" = --parity ] || [ "${1:-}" = --optimize ]; then
    files="$files $root/tests/requirements-${1#--}.txt"
    venv=$root/build/venv-${1#--}
    stamp=$venv/.stamp
fi
name=build/${venv##*/}

# shellcheck disable=SC2086
sum=$(cat $files | sha256sum | cut -d' ' -f1)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ] && [ -x "$venv/bin/python" ]; then
    exit 0
fi

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
    exit 3
fi
if [ ! -x "$venv/bin/pip" ]; then
    echo "setup_venv: making $name with $python" >&2
    mkdir -p "$root/build"
    if ! "$python" -m venv "$venv" >"$root/build/venv.log" 2>&1; then
        rm -rf "$venv"
        echo "setup_venv: python -m venv failed: apt-get install python3-venv (build/venv.log)" >&2
        exit 3
    fi
fi

for file in $files; do
    echo "setup_venv: installing $(grep -c == "$file") packages of tests/${file##*/} from PyPI" >&2
    if ! "$venv/bin/pip" install --disable-pip-version-check --no-input --quiet --no-deps \
         --only-binary :all: --require-hashes --retries 1 --timeout 20 \
         -r "$file" >"$root/build/venv.log" 2>&1; then
        if grep -qiE 'DO NOT MATCH|hash' "$root/build/venv.log"; then
            echo "setup_venv: a package does not have its pinned hash (build/venv.log)" >&2
            exit 1
        fi
        if grep -qiE 'connection|resolve|network|timed out|no matching distribution|proxy' \
             "$root/build/venv.log"; then
            echo "setup_venv: PyPI can't be reached (build/venv.log)" >&2
            exit 3
        fi
        tail -n 3 "$root/build/venv.log" >&2
        exit 1
    fi
done
printf '%s\n' "$sum" >"$stamp"
echo "setup_venv: $name is ready" >&2
