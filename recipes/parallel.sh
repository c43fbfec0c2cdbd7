#!/bin/sh
# parallel.sh MODEL INPUTS N OUT - scores a folder in N parts with GNU parallel, and joins them.
#
# MODEL is an ONNX file, INPUTS a folder with the inputs of one run in each file, OUT an .npz of all outputs. Parts
# stand in OUT.parts until they are joined; a second call computes those alone that lack, or that are older than the
# model or the inputs. The variable
# PARALLEL takes more options: PARALLEL="--jobs 4", PARALLEL="--sshloginfile hosts --workdir $PWD".
# ORT_RUN_OPTIONS goes to every ort-run.
set -eu
[ $# -eq 4 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
model=$1 inputs=$2 parts=$3 out=$4
work=$out.parts/of-$parts
mkdir -p "$work"
export model inputs parts work ORT_RUN_OPTIONS="${ORT_RUN_OPTIONS:---threads 1}"

# A part that is there was finished: files appear whole. Those of another number of parts lie in another folder.
# shellcheck disable=SC2016
parallel --env model --env inputs --env parts --env work --env ORT_RUN_OPTIONS --env PATH --retries 3 --joblog "$work/log" \
    'part="$work/part.{}.npz"
    if [ ! "$part" -nt "$model" ] || [ ! "$part" -nt "$inputs" ]; then
        ort-run "$model" "$inputs" --shard {}/"$parts" $ORT_RUN_OPTIONS -o "$part"
    fi' \
    ::: $(seq "$parts")

# shellcheck disable=SC2046
ort-tensor --interleave rows $(seq -f "$work/part.%g.npz" "$parts") -o "$out"
rm -r "$out.parts"
