# Installing: what lands where, what it weighs, what it names, what is left after uninstall.
load helper

PUBLIC="$(grep -ohE '\bort_[a-z0-9_]+\(' "$ROOT"/lib/ort*.h | tr -d '(' | sort -u)"

staged() { # staged ARGUMENT...: make install into $PWD/stage
    make -s -C "$ROOT" install DESTDIR="$PWD/stage" "$@" >/dev/null
}

@test "PREFIX, LIBDIR, MANDIR and DESTDIR say where each file goes" {
    staged PREFIX=/usr LIBDIR=/usr/lib/here MANDIR=/usr/man
    for file in bin/ort-run bin/ort-tensor lib/here/libort.a lib/here/libort.so.0 lib/here/pkgconfig/ort.pc \
        include/ort.h man/man1/ort-run.1 man/man3/ort.3 man/man5/ort-formats.5 share/doc/ort-tools/LICENSE \
        share/doc/ort-tools/examples/run_digits.c share/bash-completion/completions/ort-run \
        share/zsh/site-functions/_ort-run share/fish/vendor_completions.d/ort-run.fish; do
        [ -s "stage/usr/$file" ] || { echo "no $file"; return 1; }
    done
    [ "$(readlink stage/usr/lib/here/libort.so)" = libort.so.0 ]
    [ "$(find stage -mindepth 1 -maxdepth 1)" = stage/usr ]
    export PKG_CONFIG_LIBDIR=$PWD/stage/usr/lib/here/pkgconfig
    [ "$(pkg-config --variable=prefix ort)" = /usr ]
    [ "$(pkg-config --variable=libdir ort)" = /usr/lib/here ]
    [ "$(pkg-config --modversion ort)" = 0.1.0 ]
}

@test "after an install elsewhere, ort.pc names the folders of this one" {
    staged PREFIX=/opt/one
    staged PREFIX=/opt/two
    grep -qx 'prefix=/opt/two' stage/opt/two/lib/pkgconfig/ort.pc
}

@test "what README and the other pages link to is installed beside them" {
    staged PREFIX=/usr
    cd stage/usr/share/doc/ort-tools
    [ "$(grep -c '](doc/' README.md)" -ge 2 ]
    for page in $(find . -name '*.md'); do
        for link in $(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '^https*:'); do
            [ -s "$(dirname "$page")/$link" ] || { echo "$page links to $link"; return 1; }
        done
    done
}

# 50 MB were those of six tools; ort-quantize came to them with 7, the drop-in with 6, floats on tiles and libraries of
# providers with 0.2 in each of nine.
@test "what is installed is stripped, a tool takes at most 7 MB, and all of it 65" {
    staged PREFIX=/usr
    for file in stage/usr/bin/ort-run stage/usr/lib/libort.so.0; do
        ! readelf -S "$file" | grep -q '\.debug_info' || { echo "$file has debug information"; return 1; }
    done
    for file in stage/usr/bin/ort-*; do
        [ "$(du -sm "$file" | cut -f1)" -le 7 ]
    done
    [ "$(du -sm stage | cut -f1)" -le 65 ]
}

@test "install-debug keeps what was stripped where debuggers look" {
    make -s -C "$ROOT" install-debug DESTDIR="$PWD/stage" PREFIX=/usr >/dev/null
    id=$(LC_ALL=C readelf -n "$ROOT/build/bin/ort-run" | sed -n 's/.*Build ID: //p')
    readelf -S "stage/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" | grep -q '\.debug_info'
}

@test "uninstall leaves no file, not of install-debug either" {
    staged PREFIX=/usr
    make -s -C "$ROOT" install-debug DESTDIR="$PWD/stage" PREFIX=/usr >/dev/null
    echo mine >stage/usr/share/doc/mine
    make -s -C "$ROOT" uninstall DESTDIR="$PWD/stage" PREFIX=/usr >/dev/null
    [ "$(find stage ! -type d)" = stage/usr/share/doc/mine ]
    [ -z "$(find stage -type d -name 'ort*' -o -type d -name 'zsh*' -o -type d -name '.build-id')" ]
}

@test "the archive and the shared library name what ort.h names, and nothing else" {
    [ "$(wc -w <<<"$PUBLIC")" -gt 100 ]
    names=$(nm -g --defined-only "$ROOT/build/lib/libort.a" 2>/dev/null | sed -n 's/.* [TDBRV] //p' | sort -u)
    for name in $names; do
        grep -qx "$name" <<<"$PUBLIC" || { echo "libort.a defines $name"; return 1; }
    done
    shared=$(nm -D --defined-only "$ROOT/build/lib/libort.so" | sed -n 's/.* [TDBRV] //p' | sort -u)
    [ "$(sed 's/@@ORT_0\.1$//' <<<"$shared")" = "$names" ]
    ! grep -v '@@ORT_0\.1$' <<<"$shared" || false
    [ "$(readlink "$ROOT/build/lib/libort.so.0")" = libort.so ]
}

@test "other link flags make another build" {
    make -C "$ROOT" -n SHARED=1 all | grep -q -- '-lprotobuf-c'
    make -C "$ROOT" -n LDFLAGS=-Wl,-O1 all | grep -q -- '-Wl,-O1'
}

@test "nothing that is built names the folder it was built in" {
    for file in "$ROOT"/build/bin/ort-run "$ROOT"/build/lib/libort.so "$ROOT"/build/lib/libort.a; do
        ! grep -qF "$ROOT/" "$file" || { echo "$file names $ROOT"; return 1; }
    done
}

@test "bash, zsh and fish complete every option of every tool" {
    make -s -C "$ROOT" completions
    for tool in "$ROOT"/build/bin/ort-*; do
        tool=${tool##*/}
        bash -n "$ROOT/build/completions/$tool.bash"
        zsh -n "$ROOT/build/completions/$tool.zsh"
        fish -n "$ROOT/build/completions/$tool.fish"
        for option in $($tool --help=table | sed 1d | cut -f1); do
            for shell in bash zsh; do
                grep -q -- "--$option\b" "$ROOT/build/completions/$tool.$shell" || { echo "$tool $shell $option"; return 1; }
            done
            grep -q -- "-l $option\b" "$ROOT/build/completions/$tool.fish" || { echo "$tool fish $option"; return 1; }
        done
    done
}

completes() { # completes WORD... : what bash offers for the last of them
    source "$ROOT/build/completions/$1.bash"
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    "_${1//-/_}"
    echo "${COMPREPLY[*]}"
}

@test "bash completes words, passes and options" {
    make -s -C "$ROOT" completions
    [ "$(completes ort-run --math s)" = strict ]
    [ "$(completes ort-run --math = fa)" = fast ]
    [ "$(completes ort-run --no-pro)" = --no-progress ]
    [[ " $(completes ort-optimize --disable constant_f) " == *" constant_fold"* ]]
    [ "$(completes ort-run net.on)" = "" ] # bash goes on to files
}

@test "options, words and files complete where they are typed, in bash, zsh and fish" {
    make -s -C "$ROOT" completions
    for shell in bash zsh fish; do
        python3 "$ROOT/tests/tools/type_completions.py" $shell "$ROOT/build/completions"
    done
}

@test "an archive of a release is the same bytes each time, and holds no build" {
    git -C "$ROOT" rev-parse HEAD >/dev/null 2>&1 || skip "not a git checkout"
    make -s -C "$ROOT" dist >/dev/null
    cp "$ROOT"/build/dist/ort-tools-0.1.0.tar.gz a.tar.gz
    make -s -C "$ROOT" dist >/dev/null
    cmp a.tar.gz "$ROOT"/build/dist/ort-tools-0.1.0.tar.gz
    tar -tzf a.tar.gz >names
    grep -qx ort-tools-0.1.0/Makefile names
    ! grep -q /build/ names
}
