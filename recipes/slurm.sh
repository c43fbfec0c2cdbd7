#!/bin/sh
# slurm.sh MODEL INPUTS N OUT - scores a folder in N parts as a job array of Slurm; a job behind it joins them.
#
# MODEL is an ONNX file, INPUTS a folder with the inputs of one run in each file, OUT an .npz of all outputs; all on a
# file system that the nodes share. Parts and logs stand in OUT.parts until they are joined; a second call submits the array
# again, which computes those alone that lack, or are older than the model or inputs. A task whose node fails, or that is requeued, starts its part again. Prints
# the number of the job that joins. More options of sbatch: the variables SBATCH_PARTITION and so on (sbatch(1)).
set -eu
[ $# -eq 4 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
model=$1 inputs=$2 parts=$3 out=$4
work=$out.parts/of-$parts
mkdir -p "$work"
export model inputs parts work out

# shellcheck disable=SC2016
array=$(sbatch --parsable --export=ALL --requeue --array="1-$parts" --job-name=ort-part --output="$work/log.%a" \
    --wrap 'part=$work/part.$SLURM_ARRAY_TASK_ID.npz
        [ "$part" -nt "$model" ] && [ "$part" -nt "$inputs" ] && exit 0
        exec ort-run "$model" "$inputs" --shard "$SLURM_ARRAY_TASK_ID/$parts" --threads "${SLURM_CPUS_PER_TASK:-1}" \
            -o "$part"')

# shellcheck disable=SC2016
sbatch --parsable --export=ALL --dependency="afterok:$array" --kill-on-invalid-dep=yes --job-name=ort-join \
    --output="$work/log.join" \
    --wrap 'set -e
        ort-tensor --interleave rows $(seq -f "$work/part.%g.npz" "$parts") -o "$out"
        rm -r "$out.parts"'
