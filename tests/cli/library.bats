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

@test "the header compiles as C++" {
    command -v g++ >/dev/null || skip "no g++"
    printf '#include "ort.h"\nint main() { return ort_version() == nullptr; }\n' >x.cc
    g++ -Wall -Wextra -Werror -I"$ROOT/lib" -c x.cc -o x.o
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
        for option in $(sed '/^Examples:/,$d' <<<"$output" | grep -E '^ +(-[a-z], )?--' | grep -oE -- '--[a-z][a-z-]+' | sort -u); do
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
