#!/bin/sh
# Fill the topologies into build/topologies, make the bench's own models in build/bench/nets and the
# int8 forms of float models in build/bench/int8 (once; 2.5 GB), and run the benchmark beside the peers that can be had here, in build/venv-bench.
#
# usage: tests/tools/run_bench.sh PROGRAM MODELS_DIR [OPTION...]   (options of tests/bench/bench.c)
#
# ONLY="PATTERN ..." fills, makes and times only the models that one of them takes ("mlperf_* bert_base",
# or a list: ONLY="$(cat FILE)"); THREADS=LIST times with these numbers of threads (1,2);
# NO_TOPOLOGIES=1 leaves out what is filled.
# TFLITE_DIR: the MLPerf Tiny models as published (default MODELS_DIR/../tflite).
set -uf
program=$1
models=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/build/venv-bench
if ! "$root/tests/tools/setup_venv.sh" --bench; then
    echo "bench: skipped, Python's packages can't be installed here" >&2
    exit 3
fi

peer() { # peer NAME PACKAGE [LIBRARY]: its version and where it is, of those that are installed
    [ "$1" = onnxruntime ] || [ -f "$venv/.stamp-$1" ] || return 0
    where=$("$venv/bin/python" - "$2" "${3:-}" <<'END'
import importlib.metadata, sys
package = importlib.metadata.distribution(sys.argv[1])
found = [f.locate() for f in package.files if sys.argv[2] and f.match(sys.argv[2])]
print("%s=%s" % (package.version, found[0] if found else sys.executable))
END
) && echo "--peer $1=$where"
}

peers="$(peer onnxruntime onnxruntime 'libonnxruntime.so.*')
$(peer openvino openvino 'libopenvino_c.so.*')
$(peer tract tract 'tract.*.so')
$(peer litert ai-edge-litert)
$(peer ctranslate2 ctranslate2)
$(peer lleaves lleaves)
$(peer llamacpp llama-cpp-python)
--python-worker $root/tests/bench/peers/worker.py"
TFLITE_DIR=${TFLITE_DIR:-$models/../tflite}
BENCH_CACHE=$root/build/bench/forms
ORT_BIN=$root/build/bin
export TFLITE_DIR BENCH_CACHE ORT_BIN
[ -d "$TFLITE_DIR" ] || echo "bench: no $TFLITE_DIR: MLPerf Tiny models in LiteRT's form only" >&2
filled=
if [ -z "${NO_TOPOLOGIES:-}" ]; then
    filled=$(sh "$root/tests/tools/fill_topologies.sh" "$models" "$venv/bin/python") || exit 1
fi
mkdir -p "$root/build/bench/nets" "$BENCH_CACHE"
# shellcheck disable=SC2086
"$venv/bin/python" "$root/tests/bench/nets/make.py" "$root/build/bench/nets" ${ONLY:-} >&2 || exit 1
# shellcheck disable=SC2086
"$venv/bin/python" "$root/tests/bench/nets/prompts.py" "$root/build/bench/nets" "$models" \
    ${ONLY:-} >&2 || exit 1
# shellcheck disable=SC2086
"$venv/bin/python" "$root/tests/bench/nets/int8.py" "$root/build/bench/int8" "$models" \
    "${filled:-$root/build/none}" "$root/build/bench/nets" ${ONLY:-} >&2 || exit 1
# shellcheck disable=SC2086
[ -z "${ONLY:-}" ] || set -- --only "@($(echo $ONLY | tr ' ' '|'))" "$@"
[ -z "${THREADS:-}" ] || set -- --threads "$THREADS" "$@"
# A linker writes a program in small pieces, and the page cache keeps these: each page of text that a
# fault brings is one of them. What is installed was copied, as the peers' libraries are.
if ! cp "$program" "$program.$$" || ! mv -f "$program.$$" "$program.copied"; then
    exit 1
fi
program=$program.copied
# shellcheck disable=SC2086
exec env ORT_DISABLE_TELEMETRY=1 "$program" $peers --scratch "$root/build/bench" \
    --families "$root/tests/bench/families.txt" "$@" "$models" $filled "$root/build/bench/nets" \
    "$root/build/bench/int8"
