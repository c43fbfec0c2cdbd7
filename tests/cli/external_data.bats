# external_data.bats - weights beside a model: which files a model's locations may reach, through links or
# not, and which are refused. store/ holds a model with its weights; the weights of outside/ are others, so
# that a digest tells whose were read.

load helper

setup_file() {
    export STORE=$BATS_FILE_TMPDIR/store
    mkdir -p "$STORE" "$BATS_FILE_TMPDIR/outside"
    ort-optimize -q "$MODELS_DIR/digits.onnx" -o "$STORE/m.onnx" --external-data
    tr '\0-\377' '\1-\377\0' <"$STORE/m.onnx.data" >"$BATS_FILE_TMPDIR/outside/m.onnx.data"
    export RIGHT=$(ort-run "$STORE/m.onnx" --random 1 --hash)
}

setup() {
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit 1
    mkdir net outside # the model's folder, and one that it may not read
    cp "$STORE/m.onnx" net
    cp "$STORE/m.onnx.data" outside/w.bin
}

# loads ARGUMENTS...: the model's weights are those of the store.
loads() {
    works ort-run "$@" --random 1 --hash
    [ "$output" = "$RIGHT" ] || {
        echo "other weights: $output"
        return 1
    }
}

# refused PATTERN ARGUMENTS...
refused() {
    local pattern=$1
    shift
    fails 3 "$pattern" timeout 10 ort-run "$@" --random 1 --hash
    [ -z "$output" ]
}

cache() { # a cache as its downloaders lay it out; $1: the model in it
    mkdir -p "$(dirname "$1")" "${1%%/snapshots/*}/blobs"
    cp "$STORE/m.onnx" "${1%%/snapshots/*}/blobs/aa11"
    cp "$STORE/m.onnx.data" "${1%%/snapshots/*}/blobs/bb22"
    local up=${1#*/snapshots/}
    up=$(dirname "$up" | sed 's|[^/]*|..|g')/..
    ln -s "$up/blobs/aa11" "$1"
    ln -s "$up/blobs/bb22" "$1.data"
}

@test "a link to a file in the model's folder, or below it, is followed" {
    mkdir -p net/deep/er
    mv outside/w.bin net/deep/er
    ln -s deep/er/w.bin net/m.onnx.data
    loads net/m.onnx
    ln -sf "$PWD/net/deep/er/w.bin" net/m.onnx.data # absolute
    loads net/m.onnx
    ln -sf ../net/deep/er/w.bin net/m.onnx.data # out and in again
    loads net/m.onnx
    ln -s m.onnx.data net/second
    ln -sf deep/er/../er/w.bin net/deep/third
    ln -sf deep/third net/m.onnx.data
    rm net/deep/third && ln -s er/w.bin net/deep/third
    loads net/m.onnx
    (cd net/deep && loads ../m.onnx) # wherever the tool runs
    (cd net && loads m.onnx)
    ln -s net named
    loads named/m.onnx
}

@test "a link that leads out of the model's folder is refused with where it leads and the remedy" {
    local place="m.onnx: tensor '[a-z0-9.]*': external data: m.onnx.data leads through a link to"
    ln -s ../outside/w.bin net/m.onnx.data
    refused "$place $PWD/outside/w.bin, outside of the model's folder \(--external-data-root $PWD/outside allows that\)" net/m.onnx
    ln -sf "$PWD/outside/w.bin" net/m.onnx.data
    refused "$place $PWD/outside/w.bin" net/m.onnx
    rm net/m.onnx.data
    ln -s w.bin net/m.onnx.data # a chain
    ln -s ../outside/w.bin net/w.bin
    refused "$place $PWD/outside/w.bin" net/m.onnx
    rm net/w.bin # a folder that is a link
    ln -s ../outside net/sub
    ln -sf sub/w.bin net/m.onnx.data
    refused "$place $PWD/outside/w.bin" net/m.onnx
    mkdir net-2 # a name that merely begins as the folder's
    mv outside/w.bin net-2
    ln -sf ../net-2/w.bin net/m.onnx.data
    refused "$place $PWD/net-2/w.bin" net/m.onnx
    mv net-2/w.bin . # the folder above
    ln -sf ../w.bin net/m.onnx.data
    refused "$place $PWD/w.bin" net/m.onnx
}

@test "--external-data-root DIR allows links to DIR, and is a folder to look in" {
    ln -s ../outside/w.bin net/m.onnx.data
    loads net/m.onnx --external-data-root outside
    loads net/m.onnx --external-data-root "$PWD/outside/"
    loads net/m.onnx --external-data-root .
    loads net/m.onnx --external-data-root /
    mkdir other
    refused "leads through a link" net/m.onnx --external-data-root other
    rm net/m.onnx.data
    refused "net/m.onnx.data can't be opened: No such file.*--external-data-root DIR" net/m.onnx
    mv outside/w.bin outside/m.onnx.data
    loads net/m.onnx --external-data-root outside
    printf x >net/m.onnx.data # what lies beside the model comes first
    refused "1 bytes" net/m.onnx --external-data-root outside
    fails 5 "folder none of external data can't be opened" \
        ort-run net/m.onnx --external-data-root none --random 1 --hash
}

@test "every tool that loads a model takes --external-data-root" {
    ln -s ../outside/w.bin net/m.onnx.data
    local tool
    for tool in "ort-inspect --check" "ort-inspect --memory" "ort-optimize --no-verify -o o.onnx" \
        "ort-profile --seconds 0.1" "ort-run --compare-levels --random 1" \
        "ort-inspect --extract :probabilities -o part.onnx" "ort-run --random 1 --compare $STORE/m.onnx"; do
        fails 3 "leads through a link" $tool net/m.onnx
        # shellcheck disable=SC2086
        run --separate-stderr $tool net/m.onnx --external-data-root outside
        echo "$tool: $status $stderr"
        [ "$status" -eq 0 ]
    done
    loads o.onnx
    works ort-inspect net/m.onnx # nothing of the data is read
}

@test "a model in a cache of models reaches the blobs of that cache" {
    local m=hub/models--org--name/snapshots/0123abc/m.onnx
    cache "$m"
    loads "$m"
    cache hub/models--org--deep/snapshots/0123abc/onnx/q4/m.onnx
    loads hub/models--org--deep/snapshots/0123abc/onnx/q4/m.onnx
    rm "$m" # the model a copy, the weights a link
    cp "$STORE/m.onnx" "$m"
    loads "$m"
    ln -s hub linked
    loads "linked/${m#hub/}"
    (cd "$(dirname "$m")" && loads m.onnx)
    ln -s "$PWD/$m" short.onnx # a link to the link
    loads short.onnx
    mv "hub/models--org--name/blobs/bb22" hub/models--org--name/snapshots/other
    ln -sf ../other "$m.data"
    loads "$m"
}

@test "what only looks like a cache, or lies beside it, widens nothing" {
    local m=hub/models--org--name/snapshots/0123abc/m.onnx
    cache "$m"
    cp outside/w.bin hub/w.bin
    ln -sf ../../../w.bin "$m.data" # out of the model's own cache
    refused "leads through a link to $PWD/hub/w.bin" "$m"
    cache hub/models--org--other/snapshots/1/m.onnx
    ln -sf ../../../models--org--other/blobs/bb22 "$m.data" # the cache of another model
    refused "leads through a link" "$m"
    rm "$m" && cp "$STORE/m.onnx" "$m"
    local name
    for name in models-org snap/models--x/snapshot; do # other names
        mkdir -p "$name/snapshots/1" "$name/blobs"
        cp "$STORE/m.onnx" "$name/snapshots/1"
        cp outside/w.bin "$name/blobs/bb22"
        ln -s ../../blobs/bb22 "$name/snapshots/1/m.onnx.data"
        refused "leads through a link" "$name/snapshots/1/m.onnx"
    done
    mkdir -p models--x/snapshots/1 # no blobs, and blobs that are a link
    cp "$STORE/m.onnx" models--x/snapshots/1
    cp outside/w.bin models--x/w.bin
    ln -s ../../w.bin models--x/snapshots/1/m.onnx.data
    refused "leads through a link" models--x/snapshots/1/m.onnx
    ln -s ../outside models--x/blobs
    refused "leads through a link" models--x/snapshots/1/m.onnx
    ln -sf ../../blobs/w.bin models--x/snapshots/1/m.onnx.data
    refused "leads through a link to $PWD/outside/w.bin" models--x/snapshots/1/m.onnx
    rm models--x/blobs && mkdir models--x/blobs # the model in snapshots itself
    cp "$STORE/m.onnx" models--x/snapshots/m.onnx
    ln -s ../w.bin models--x/snapshots/m.onnx.data
    refused "leads through a link" models--x/snapshots/m.onnx
}

@test "a model that is a link reaches the folder of the link and that of the model" {
    ln -s net/m.onnx here.onnx
    cp outside/w.bin net/m.onnx.data
    loads here.onnx # beside the model
    mv net/m.onnx.data .
    loads here.onnx # beside the link
    rm m.onnx.data
    ln -s net/w.bin m.onnx.data
    cp outside/w.bin net/w.bin
    loads here.onnx # beside the link, a link to beside the model
    ln -sf outside/w.bin m.onnx.data # the link lies in the folder above
    loads here.onnx
    mkdir links
    ln -s ../net/m.onnx links/m.onnx
    ln -s ../outside/w.bin links/m.onnx.data
    refused "leads through a link to $PWD/outside/w.bin" links/m.onnx
    ln -s links/m.onnx two.onnx # each file on the way
    rm links/m.onnx.data m.onnx.data && cp outside/w.bin links/m.onnx.data
    loads two.onnx
    ln -s loop.onnx loop.onnx
    refused "loop.onnx: can't be opened: Too many levels" loop.onnx
}

@test "a model from a pipe has no folder but --external-data-root" {
    cp outside/w.bin net/m.onnx.data
    # shellcheck disable=SC2016
    refused "without a folder.*--external-data-root DIR" - <net/m.onnx
    loads - --external-data-root net <net/m.onnx
    run bash -c 'ort-run <(cat net/m.onnx) --external-data-root net --random 1 --hash'
    [ "$status" -eq 0 ] && [ "$output" = "$RIGHT" ]
    run bash -c 'ort-run <(cat net/m.onnx) --random 1 --hash'
    [ "$status" -eq 3 ]
    run bash -c 'ort-run <(cat '"$MODELS_DIR"'/digits.onnx) --random 1 --hash' # and needs none
    [ "$status" -eq 0 ]
}

@test "loops, pipes, devices, folders and what isn't there are refused, and nothing waits" {
    ln -s m.onnx.data net/m.onnx.data
    refused "net/m.onnx.data is a loop of links" net/m.onnx
    ln -sf other net/m.onnx.data
    ln -s m.onnx.data net/other
    refused "is a loop of links" net/m.onnx
    rm net/m.onnx.data net/other
    mkfifo net/m.onnx.data
    refused "net/m.onnx.data is no regular file" net/m.onnx
    rm net/m.onnx.data
    mkfifo net/pipe
    ln -s pipe net/m.onnx.data
    refused "is no regular file" net/m.onnx
    ln -sf /dev/zero net/m.onnx.data
    refused "is no regular file" net/m.onnx --external-data-root /
    ln -sf /dev/stdin net/m.onnx.data
    refused "m.onnx: tensor" net/m.onnx <outside/w.bin
    rm net/m.onnx.data
    mkdir net/m.onnx.data
    refused "is no regular file" net/m.onnx
    rmdir net/m.onnx.data
    ln -s nowhere net/m.onnx.data
    refused "can't be opened: No such file" net/m.onnx
    ln -sf "$(printf 'a/%.0s' {1..2040})" net/m.onnx.data
    refused "can't be opened: " net/m.onnx
}

@test "absolute locations and .. are refused, whatever --external-data-root says" {
    python3 "$ROOT/tests/tools/fixtures.py" fx
    FX=fx
    fails 3 "'../../x' leads outside" ort-run "$FX/escape.onnx" "$FX/x.npy" --external-data-root / -o y.npy
}

@test "a hard link is a name like another" {
    ln outside/w.bin net/m.onnx.data
    loads net/m.onnx
}

@test "links that change while the model is read never give it a file from outside" {
    cp outside/w.bin net/w.bin
    cp "$BATS_FILE_TMPDIR/outside/m.onnx.data" outside/w.bin # other weights
    ln -s w.bin net/m.onnx.data
    ln -s w.bin net/inner
    ln -s ../outside/w.bin net/outer
    (
        while [ ! -e stop ]; do
            mv -fT net/inner net/m.onnx.data && ln -s w.bin net/inner
            mv -fT net/outer net/m.onnx.data && ln -s ../outside/w.bin net/outer
        done
    ) &
    local i right=0 refused=0
    for i in {1..60}; do
        run --separate-stderr ort-run net/m.onnx --random 1 --hash
        if [ "$status" -eq 0 ] && [ "$output" = "$RIGHT" ]; then
            right=$((right + 1))
        elif [ "$status" -eq 3 ] && [[ $stderr == *"external data"* ]]; then
            refused=$((refused + 1))
        else
            touch stop
            echo "$status $output $stderr"
            return 1
        fi
    done
    touch stop
    wait
    echo "$right right, $refused refused"
    [ $((right + refused)) -eq 60 ]
}

@test "a model in place of a linked one leaves the links, and loads again" {
    local m=hub/models--org--name/snapshots/0123abc/m.onnx
    cache "$m"
    works ort-optimize -q --no-verify "$m" -o "$m"
    [ -L "$m" ] && [ -L "$m.data" ]
    loads "$m" # its weights within
    cache hub/models--org--b/snapshots/1/m.onnx
    m=hub/models--org--b/snapshots/1/m.onnx
    works ort-optimize -q --no-verify "$m" -o "$m" --external-data
    [ -L "$m" ] && [ -L "$m.data" ]
    loads "$m"
    works ort-optimize -q --no-verify "$m" -o copy.onnx --external-data
    loads copy.onnx
}

@test "weights aren't written through a link to where no load would find them" {
    cp outside/w.bin before
    ln -s outside/w.bin o.onnx.data
    works ort-optimize -q --no-verify "$MODELS_DIR/digits.onnx" -o o.onnx --external-data # below .
    ort-run o.onnx --random 1 --hash
    cp before outside/w.bin
    ln -s ../outside/w.bin net/o.onnx.data
    fails 2 "external data 'o.onnx.data' is a link that leads outside" \
        ort-optimize -q --no-verify "$MODELS_DIR/digits.onnx" -o net/o.onnx --external-data
    cmp before outside/w.bin
    [ ! -e net/o.onnx ]
    ln -sf nowhere net/o.onnx.data
    fails 2 "or nowhere" \
        ort-optimize -q --no-verify "$MODELS_DIR/digits.onnx" -o net/o.onnx --external-data
}

@test "a pack is mapped where the model's folder holds it, and a pipe of its name isn't waited for" {
    works ort-optimize -q --no-verify "$MODELS_DIR/digits.onnx" -o p.onnx --pack --external-data
    mkdir packs
    mv p.onnx.pack packs
    ln -s packs/p.onnx.pack .
    run --separate-stderr ort-run p.onnx -v --random 1 --hash
    [[ $stderr == *"p.onnx.pack: mapped"* ]]
    mv p.onnx p.onnx.data net
    ln -s ../packs/p.onnx.pack net/p.onnx.pack
    run --separate-stderr ort-run net/p.onnx --random 1 --hash
    [ "$status" -eq 0 ] && [[ $stderr == *"pack: ignored: p.onnx.pack leads through a link"* ]]
    rm net/p.onnx.pack
    mkfifo net/p.onnx.pack
    run --separate-stderr timeout 10 ort-run net/p.onnx --random 1 --hash
    [ "$status" -eq 0 ] && [[ $stderr == *"is no regular file"* ]]
    rm net/p.onnx.pack # the stamp's data file is judged as well
    cp packs/p.onnx.pack net
    mv net/p.onnx.data outside
    ln -s ../outside/p.onnx.data net/p.onnx.data
    refused "leads through a link" -q net/p.onnx
    run --separate-stderr ort-run -v net/p.onnx --random 1 --hash --external-data-root outside
    [ "$status" -eq 0 ] && [[ $stderr == *"p.onnx.pack: mapped"* ]]
    run ort-inspect net/p.onnx --pack
    [ "$status" -eq 1 ] && has "this external data differs"
    works ort-inspect net/p.onnx --verify-pack --external-data-root outside
    has "fits, every byte is as written"
}
