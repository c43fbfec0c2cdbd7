#!/bin/sh
# Build llama.cpp from the sources of its Python binding, with all that this processor has, and put
# the wheel into a venv. The wheel stays in build/llamacpp for as long as the processor and this file
# are the same; a build that was stopped goes on where it was.
#
# usage: llamacpp.sh VENV   (with the packages of llamacpp.txt)
#
# Exit status: 0 it is there, 3 it can't be had here (no compiler, no network), 1 it doesn't build.
set -u
venv=$1
root=$(cd "$(dirname "$0")/../../.." && pwd)
processor=$({ grep -m 1 '^flags' /proc/cpuinfo; cat "$0"; } | sha256sum | cut -c 1-8)
place=$root/build/llamacpp
wheels=$place/$processor
log=$place/log
package=llama_cpp_python-0.3.36

for tool in cmake ninja c++; do
    if ! command -v $tool >/dev/null 2>&1; then
        echo "llamacpp: no $tool here, with which it is built" >&2
        exit 3
    fi
done
mkdir -p "$wheels"
if ! ls "$wheels/$package"-*.whl >/dev/null 2>&1; then
    cat >"$place/source.txt" <<'END'
llama-cpp-python==0.3.36 \
    --hash=sha256:832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
END
    if [ ! -d "$place/$package" ]; then
        if ! "$venv/bin/pip" download --disable-pip-version-check --no-input --quiet --no-deps \
             --no-binary llama-cpp-python --no-build-isolation --require-hashes --retries 1 \
             --timeout 20 -d "$place" -r "$place/source.txt" >"$log" 2>&1; then
            echo "llamacpp: its sources can't be had (build/llamacpp/log)" >&2
            exit 3
        fi
        tar -xzf "$place/$package.tar.gz" -C "$place" || exit 1
    fi
    # What serves its command-line tools takes most of the time to build, and has no user here.
    sed -i 's/LLAMA_BUILD_COMMON ON CACHE/LLAMA_BUILD_COMMON OFF CACHE/' \
        "$place/$package/CMakeLists.txt"
    # gcc 12's intrinsic tells the compiler that 8 of the configuration's 64 bytes are read, so that the
    # others stay zero, and the first load of a tile ends the program (illegal instruction).
    sed -i 's/_tile_loadconfig(&tc);/__asm__ volatile("ldtilecfg %0" : : "m"(tc));/' \
        "$place/$package/vendor/llama.cpp/ggml/src/ggml-cpu/amx/mmq.cpp"
    echo "llamacpp: building it for this processor, which takes some minutes" >&2
    if ! CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF" "$venv/bin/pip" wheel \
         --disable-pip-version-check --no-input --no-deps --no-build-isolation \
         -C build-dir="$place/objects-$processor" -w "$wheels" "$place/$package" >"$log" 2>&1; then
        tail -n 3 "$log" >&2
        echo "llamacpp: it doesn't build (build/llamacpp/log)" >&2
        exit 1
    fi
fi
"$venv/bin/pip" install --disable-pip-version-check --no-input --quiet --no-deps --force-reinstall \
    "$wheels/$package"-*.whl >"$log" 2>&1 || { tail -n 3 "$log" >&2; exit 1; }
