#!/bin/bash
# run_cross.sh musl | aarch64 [MODELS]: the tools for another C library or another processor, with the model
# set: through the library, as `make models` does, then by ort-run, and a picture through a pipe.
#
# musl: with musl-gcc, and run here. aarch64: with gcc-aarch64-linux-gnu, the scalar tier, run under
# qemu-user-static. The three libraries that the build links are built from Debian's sources for it;
# headers of image libraries are this machine's, since those are opened when they are there. Nothing is
# installed, and build/bin stays as it is. Needs apt-get for the sources.
set -eu
cd "$(dirname "$0")/../.."
kind=${1:-}
case $kind in
musl) cc=musl-gcc host=x86_64-linux-musl run="" packages="musl-tools" ;;
aarch64)
    cc=aarch64-linux-gnu-gcc host=aarch64-linux-gnu run="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
    packages="gcc-aarch64-linux-gnu qemu-user-static" ;;
*) echo "usage: run_cross.sh musl|aarch64" >&2; exit 2 ;;
esac
for tool in $cc ${run%% *} cmake; do
    command -v "$tool" >/dev/null || {
        echo "$kind: needs $tool (apt-get install $packages cmake)"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    }
done
base=$PWD/build/cross
prefix=$base/$kind
mkdir -p "$base/src" "$base/apt/lists/partial" "$prefix/include"

fetch() { # Debian's sources of what the build links, without touching the system's lists
    sed 's/^Types: .*/Types: deb-src/' /etc/apt/sources.list.d/*.sources >"$base/apt/src.sources" 2>/dev/null ||
        sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$base/apt/src.list"
    local apt="-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$base/apt
        -o Dir::State::lists=$base/apt/lists"
    # shellcheck disable=SC2086
    apt-get $apt update -qq && (cd "$base/src" && apt-get $apt source -qq zlib json-c protobuf-c)
}

build_libraries() {
    local work=$base/work-$kind
    rm -rf "$work" && mkdir "$work"
    cp -r "$base"/src/zlib-* "$work/z" && cp -r "$base"/src/json-c-* "$work/j" && cp -r "$base"/src/protobuf-c-* "$work/p"
    (cd "$work/z" && CC=$cc ./configure --static --prefix="$prefix" && make -s install) &&
        (cd "$work/j" && cmake -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_C_COMPILER=$cc -DBUILD_SHARED_LIBS=OFF \
            -DBUILD_TESTING=OFF -DBUILD_APPS=OFF -DDISABLE_EXTRA_LIBS=ON -DCMAKE_INSTALL_PREFIX="$prefix" . &&
            make -s install) &&
        (cd "$work/p" && ./configure CC=$cc --host=$host --disable-protoc --disable-shared --prefix="$prefix" &&
            make -s install) || return
    (cd /usr/include && cp -rL png*.h j*.h webp openjpeg-2.5 ./*-linux-gnu/jconfig.h "$prefix/include/")
    [ $kind != musl ] || (cd /usr/include && cp -rL linux asm-generic ./*-linux-gnu/asm "$prefix/include/")
}

if [ ! -f "$prefix/.stamp" ]; then
    ls "$base"/src/zlib-* >/dev/null 2>&1 || fetch >"$base/fetch.log" 2>&1 || {
        echo "$kind: Debian's sources can't be had ($base/fetch.log)"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    }
    build_libraries >"$base/$kind-libraries.log" 2>&1 || {
        tail -n 5 "$base/$kind-libraries.log"
        echo "0 passed, 1 failed, 0 skipped"
        exit 1
    }
    touch "$prefix/.stamp"
fi
obj=build/cross/obj-$kind
models=${2:-../shared/models}
make -s -j2 CC="${CCACHE:-} $cc" CPPFLAGS="-I$prefix/include" LDFLAGS="-L$prefix/lib" OBJ=$obj \
    $obj/tests/models/models $obj/bin/ort-run $obj/bin/ort-tensor $obj/bin/ort-inspect
file $obj/bin/ort-run 2>/dev/null || true
passed=0 failed=0

count() { # count STATUS NAME
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "not ok $2"
    fi
}

tool() { # tool NAME ARGUMENT...
    local name=$1
    shift
    $run "$obj/bin/$name" "$@"
}

# What a set is compared with: values with exact sums where tests/models/exact has them.
expected() { # expected MODEL SET
    local exact=tests/models/exact/$1/$2
    [ -d "$exact" ] && echo "$exact --rtol 1e-5 --atol 1e-5" && return
    sed -n 's/^ *"\([ra]tol\)": *\([0-9.e-]*\),*$/--\1 \2/p' "$models/$1/meta.json" | paste -sd' ' |
        sed "s|^|$models/$1/$2 |"
}

by_tools() {
    local meta folder name set
    for meta in "$models"/*/meta.json; do
        name=$(basename "$(dirname "$meta")")
        for folder in "$models/$name"/test_data_set_*; do
            set=${folder##*/}
            # shellcheck disable=SC2046
            tool ort-run "$models/$name/model.onnx" -i "$folder" --expect $(expected "$name" "$set") >$obj/out 2>&1
            count $? "ort-run $name $set: $(head -n 1 $obj/out)"
        done
    done
    tool ort-inspect models/digits.onnx --check >/dev/null
    count $? "ort-inspect --check"
    # models/images/digit_7_008.png as a PGM: PNG would need a library of that machine.
    (echo P2 8 8 255 && cat) >$obj/seven.pgm <<'END'
0 0 143 255 255 255 80 0
0 16 223 159 128 255 128 0
0 0 0 0 112 255 48 0
0 48 128 175 239 255 175 0
0 128 255 255 239 175 48 0
0 0 32 255 112 0 0 0
0 0 128 255 16 0 0 0
0 0 207 159 0 0 0 0
END
    tool ort-tensor $obj/seven.pgm --gray --float -o - |
        tool ort-run models/digits.onnx - | tool ort-tensor - --top 1 >$obj/out
    grep -q "^7.0\\.9" $obj/out
    count $? "a picture through pipes: $(cat $obj/out)"
}

# Every tier and number of threads is the business of `make models` here; under emulation once is enough.
set +e
$run $obj/tests/models/models --quick "$models" | tee $obj/models.log
count "${PIPESTATUS[0]}" "$kind: the model set"
by_tools
echo "$kind: model set $(tail -n 1 $obj/models.log); by the tools:"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
