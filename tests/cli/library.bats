# The library as a user of it meets it: installed, found by pkg-config, linked, documented.
load helper

@test "make install, then the example through pkg-config --static" {
    make -s -C "$ROOT" install DESTDIR= PREFIX="$PWD/prefix" >/dev/null
    export PKG_CONFIG_PATH=$PWD/prefix/lib/pkgconfig

    rm -f prefix/lib/libort.so*
    ${CC:-gcc} -Wall -Wextra -Werror "$ROOT/examples/run_digits.c" \
        $(pkg-config --cflags --libs --static ort) -o run_digits
    works ./run_digits "$MODELS_DIR/digits.onnx" "$MODELS_DIR/images/digit_7_008.png"
    [[ $output == "7 ("* ]]
    run ./run_digits nothere.onnx "$MODELS_DIR/images/digit_7_008.png"
    [ "$status" -eq 3 ]
    ${CC:-gcc} -Wall -Wextra -Werror "$ROOT/examples/continue_text.c" \
        $(pkg-config --cflags --libs --static ort) -o continue_text
    run ./continue_text "$MODELS_DIR/digits.onnx" text 1
    [ "$status" -eq 2 ]
    need_models
    works ./continue_text "$REAL/llama_byte_2m_trained/model.onnx" 'The import statement' 60
    python3 - "$REAL/llama_byte_2m_trained/greedy_expected.json" "$output" <<'PY'
import json, sys
want = json.load(open(sys.argv[1]))["output"]
assert len(sys.argv[2]) == 60 and want.startswith("The import statement" + sys.argv[2]), sys.argv[2]
PY
}

# Compiles $3 with compiler $1 as standard $2, strictly.
strict() {
    "$1" "-std=$2" -Wall -Wextra -Wpedantic -Werror -I"$ROOT/lib" -c "$3" -o strict.o
}

@test "header and examples compile strictly as C99 and C11, the C++ example as C++17" {
    local cc std example
    for cc in gcc clang; do
        command -v $cc >/dev/null || continue
        for std in c99 c11; do
            for example in "$ROOT"/examples/*.c; do
                strict $cc $std "$example"
            done
        done
    done
    for cc in g++ clang++; do
        command -v $cc >/dev/null || continue
        strict $cc c++17 "$ROOT/examples/run_digits.cc"
    done
    command -v clang >/dev/null || skip "no clang: tried gcc alone"
}

@test "the examples run under the address sanitizer and stack protectors, in C and in C++" {
    command -v g++ >/dev/null || skip "no g++"
    local safe="-g -fsanitize=address -fstack-protector-all -I$ROOT/lib -L$ROOT/build/lib"
    gcc $safe "$ROOT/examples/run_digits.c" -o digits_c -lort
    g++ -std=c++17 $safe "$ROOT/examples/run_digits.cc" -o digits_cc -lort
    ln -s "$(readlink -f "$ROOT/build/lib/libort.so")" libort.so.0
    export LD_LIBRARY_PATH=$PWD
    for program in ./digits_c ./digits_cc; do
        works $program "$MODELS_DIR/digits.onnx" "$MODELS_DIR/images/digit_7_008.png"
        [[ $output == "7 ("* ]]
        run $program nothere.onnx "$MODELS_DIR/images/digit_7_008.png"
        [ "$status" -eq 3 ]
    done
    gcc $safe "$ROOT/examples/continue_text.c" -o continue_text -lort
    run ./continue_text "$MODELS_DIR/digits.onnx" text 1
    [ "$status" -eq 2 ]
    need_models
    works ./continue_text "$REAL/llama_byte_2m_trained/model.onnx" 'The import statement' 20
    [ "${#output}" -eq 20 ]
}

@test "libort.so exports what ort.h declares, no more and no less" {
    python3 - "$ROOT" <<'PY'
import pathlib, re, subprocess, sys
root = pathlib.Path(sys.argv[1])
sys.argv = ["lint.py"]
source = (root / "tests/lint/lint.py").read_text()
start = source.index("def public_functions")
space = {"re": re, "ROOT": root}
exec(source[start:source.index("\ndef ", start + 1)], space)
listed = subprocess.run(["nm", "-D", "--defined-only", root / "build/lib/libort.so"],
                        capture_output=True, text=True, check=True).stdout.splitlines()
exported = {f[2].split("@")[0] for f in (line.split() for line in listed) if f[1] == "T"}
assert exported == set(space["public_functions"]()), exported ^ set(space["public_functions"]())
PY
}

@test "--help opens with the synopsis of the man page, which names every option" {
    local tool option
    for tool in ort-run ort-inspect ort-tensor; do
        works $tool --help
        local usage=${lines[0]}
        local page=$ROOT/man/$tool.1
        local synopsis
        synopsis=$(sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/p' "$page" | sed '1d;$d' |
            sed "s/^\.Nm.*/$tool/; s/^\.Op Ar \(.*\)/[\1]/; s/^\.Ar //" | tr '\n' ' ')
        [ "$usage" = "usage: ${synopsis% }" ] || { echo "'$usage' is not '$synopsis'"; return 1; }
        for option in $(sed '/^Examples:/,$d' <<<"$output" | grep -E '^ +(-[a-z], )?--' | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u); do
            grep -qE -- "(Fl |, )-${option#--}( |$)" "$page" || { echo "$page: no $option"; return 1; }
        done
        grep -q '^\.Sh EXIT STATUS' "$page"
    done
}

@test "--version prints name and version" {
    for tool in ort-run ort-inspect ort-tensor; do
        works $tool --version
        has "$tool 0.1.0"
    done
}

@test "manual pages have no groff warning" {
    command -v groff >/dev/null || skip "no groff"
    for page in "$ROOT"/man/*.[0-9]; do
        run --separate-stderr groff -mdoc -Tascii -ww "$page"
        [ "$status" -eq 0 ] && [ -z "$stderr" ]
    done
}
