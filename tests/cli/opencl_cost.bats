# What the cost model places, by class of device: decisions, not times. The device is that of the tests
# (tests/providers/fake_opencl.c), which says what a GPU says and computes nothing: --partition runs nothing.
# Nodes of bodies count, too.
load helper

setup_file() {
    ${CC:-gcc} -O1 -g -shared -fPIC "$ROOT/tests/providers/fake_opencl.c" -o "$BATS_FILE_TMPDIR/fake.so" \
        -l:libOpenCL.so.1 || true
    if [ -x "$ROOT/build/venv/bin/python" ]; then
        "$ROOT/build/venv/bin/python" "$ROOT/tests/tools/make_divided.py" "$BATS_FILE_TMPDIR/nets"
    fi
}

setup() {
    ort-run --provider opencl --settings >/dev/null 2>&1 || skip "this build has no OpenCL"
    [ -e "$BATS_FILE_TMPDIR/fake.so" ] || skip "no library of OpenCL to link with"
    export ORT_OPENCL_LIB=$BATS_FILE_TMPDIR/fake.so FAKE_CL_OWN=1
    nets=$BATS_FILE_TMPDIR/nets
    [ -d "$nets" ] || skip "no build/venv"
}

# placed KIND MODEL [OPTIONS]: "NODES_OF_DEVICE NODES_OF_CPU BORDERS"
placed() {
    FAKE_CL_KIND=$1 ort-inspect "$nets/$2.onnx" --partition --json --threads 2 --provider "opencl${3:-},cpu" |
        jq -r '"\(.providers[0].nodes) \(.providers[1].nodes) \(.borders)"'
}

@test "a device that is this processor gets nothing, a GPU what is worth its copies" {
    while read -r kind net want; do
        got=$(placed "$kind" "$net")
        [ "$got" = "$want" ] || { echo "$kind $net: $got, not $want"; return 1; }
    done <<'END'
discrete   large      12 0 2
integrated large      12 0 2
cpu        large      0 12 0
discrete   small      0 12 0
integrated small      0 12 0
cpu        small      0 12 0
discrete   diamond    7 0 2
integrated diamond    7 0 2
cpu        diamond    0 7 0
discrete   ping_pong  0 9 0
integrated ping_pong  0 9 0
cpu        ping_pong  0 9 0
discrete   pong_large 4 3 8
integrated pong_large 4 3 8
cpu        pong_large 0 7 0
discrete   shared     9 2 3
integrated shared     9 2 3
cpu        shared     0 11 0
discrete   left_early 8 0 3
integrated left_early 8 0 3
cpu        left_early 0 8 0
discrete   unclaimed  8 1 2
integrated unclaimed  8 1 2
cpu        unclaimed  0 9 0
discrete   body       8 4 3
integrated body       8 4 3
cpu        body       0 12 0
END
    # With cost=off everything that has a kernel goes.
    [ "$(placed discrete small :cost=off)" = "12 0 2" ]
    [ "$(placed discrete ping_pong :cost=off)" = "4 5 8" ]
}

@test "each node that stays says what it would take, and the sums are told" {
    export FAKE_CL_KIND=discrete
    works ort-inspect "$nets/small.onnx" --partition --provider opencl,cpu --threads 2
    [[ $output =~ "opencl: cost: "[0-9.]+" us and copies; "[0-9.]+" us on cpu" ]]
    [[ $output =~ "by estimate "[0-9.]+" ms, and 0.000 of copies; "[0-9.]+" on the host alone" ]]
    works ort-inspect "$nets/large.onnx" --partition --json --provider opencl,cpu --threads 2
    jq -e '[.nodes[].estimated_us | .opencl < .cpu] | all' <<<"$output" >/dev/null
    jq -e '.estimated_ms | .nodes + .copies < .host_alone / 2' <<<"$output" >/dev/null
}
