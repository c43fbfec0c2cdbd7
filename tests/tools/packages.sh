#!/bin/sh
# packages.sh [build] [test] [recipes] [demo]: installs what is missing with apt-get, saying what and why. Debian 12
# and 13 are what this is tried on; elsewhere it names what to install and goes on.
set -u
missing=""
want() { # want PACKAGE TEST REASON
    sh -c "$2" >/dev/null 2>&1 && return
    echo "missing: $1 ($3)" >&2
    missing="$missing $1"
}
have_header() { printf '#include <stddef.h>\n#include <stdio.h>\n#include <%s>\n' "$1" | ${CC:-gcc} -E -x c - ; }
want_header() { # want_header PACKAGE HEADER REASON
    have_header "$2" >/dev/null 2>&1 && return
    echo "missing: $1 ($3)" >&2
    missing="$missing $1"
}

for part in "$@"; do
    case $part in
    build)
        want gcc "command -v ${CC:-gcc}" "the C compiler"
        want libc6-dev "test -e /usr/include/stdio.h" "the C library's headers"
        want protobuf-c-compiler "command -v protoc-c" "makes the ONNX codec from lib/io/onnx.proto"
        want_header libprotobuf-c-dev protobuf-c/protobuf-c.h "reads and writes ONNX messages"
        want_header libjson-c-dev json-c/json.h "reads JSON"
        want_header zlib1g-dev zlib.h "deflated members of .npz"
        want_header libpng-dev png.h "PNG images"
        want_header libjpeg-dev jpeglib.h "JPEG images"
        want_header libwebp-dev webp/decode.h "WebP images"
        want_header libopenjp2-7-dev openjpeg-2.5/openjpeg.h "JPEG 2000 images"
        want_header opencl-c-headers CL/cl.h "the provider for OpenCL devices (OPENCL=0 does without)"
        want pkg-config "command -v pkg-config" "linking programs against the library"
        ;;
    test)
        want bats "command -v bats" "runs the command-line tests"
        want g++ "command -v g++" "shows that the header compiles as C++"
        want groff "command -v groff" "shows that the manual pages format without a warning"
        want libcairo2 "ldconfig -p | grep -q libcairo.so.2" "draws boxes, masks and curves"
        want pocl-opencl-icd "ls /etc/OpenCL/vendors/pocl.icd" "OpenCL on the CPU"
        want ocl-icd-libopencl1 "ldconfig -p | grep -q libOpenCL.so.1" "finds OpenCL's drivers"
        want parallel "command -v parallel" "runs the recipe for several processes"
        want_header libdnnl-dev oneapi/dnnl/dnnl.h "oneDNN, on which one of the plugins stands"
        want zsh "command -v zsh" "reads the completions for zsh"
        want fish "command -v fish" "reads the completions for fish"
        want locales "test -d /usr/share/i18n/locales" "shows that numbers don't follow the locale"
        want python3 "command -v python3" "makes test data and runs the lint"
        want python3-venv "python3 -c 'import venv, ensurepip'" "a place for the pinned Python packages"
        want_header libopenblas-dev cblas.h "the reference of the kernel tests"
        ;;
    recipes)
        want parallel "command -v parallel" "GNU parallel, for its recipe"
        want slurm-wlm "command -v slurmctld" "a cluster of Slurm on this machine, for its recipe"
        want munge "command -v munged" "Slurm's credentials"
        ;;
    demo)
        ;;
    esac
done
[ -z "$missing" ] && exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    echo "please install:$missing" >&2
    exit 1
fi
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
echo "installing:$missing" >&2
$sudo apt-get update -q >/dev/null && \
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends $missing >/dev/null || {
    echo "could not install:$missing" >&2
    exit 1
}
