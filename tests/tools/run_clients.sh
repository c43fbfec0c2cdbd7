#!/bin/sh
# run_clients.sh READY MODELS [--gates] - programs of PyPI on the drop-in (check_clients.py), skipped where their
# packages can't be had.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
"$root/tests/tools/setup_venv.sh" --clients
ready=$?
if [ $ready -eq 3 ]; then
    echo "skip clients: their packages can't be had here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
[ $ready -eq 0 ] || exit 1
exec "$root/build/venv-clients/bin/python" "$root/tests/tools/check_clients.py" \
    "$root/build/lib/onnxruntime/libonnxruntime.so.1" "$@"
