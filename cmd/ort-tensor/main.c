/* main.c - ort-tensor: makes, changes, looks at and judges tensors in shell pipes.
 *
 * Files (or stdin) become records; the operations run over each in command-line order; each record
 * is then printed, judged, or written.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats.h"
#include "common/labels.h"
#include "tensor_tool.h"

/* ---- the table */

static const option_row rows[] = {
#define OPTION_TARGET tool
#define OPTION OPTION_ROW
#define GROUP OPTION_HEADING
#define ROWS OPTION_ROWS
#include "options.def"
    {0},
};

static const option_row *const groups[] = {rows, settings_talk_rows, NULL};
static const option_table table = {
    "[FILE...]",
    "Makes, changes, looks at and judges tensors: images, sound, tables, arrays.",
    groups,
    "Examples:\n"
    "  ort-tensor photo.jpg --resize 256 --crop 224 --mean 0.485,0.456,0.406 \\\n"
    "    --std 0.229,0.224,0.225 | ort-run net.onnx - | ort-tensor --top 5 --labels names.txt\n"
    "  ort-tensor speech.wav --chunk 512 --context 64 | ort-run vad.onnx --stream ...\n"
    "  ort-tensor a.npy --compare b.npy --atol 1e-4\n",
    .common = "output|resize|crop|mean|std|layout|cast|print|top|labels|compare",
};

int main(int argc, char **argv)
{
    tool t = {.rtol = -1, .atol = -1, .min_sqnr = -1, .min_cosine = -1, .print_items = 16};
    string_list files = {0};
    tool_init("ort-tensor");
    settings_init(&t.settings);
    t.operations.settings = &t.settings;
    int status = options_parse(&table, argc, argv, &t, &files);
    if (status == 0)
        status = settings_resolve(&t.settings);
    if (status == 0)
        status = judge_check(&t, &files);
    if (status == 0)
        status = output_check(&t);
    if (status == 0)
        status = labels_load(t.labels, &t.label_names);
    if (status == 0)
        status = t.interleave != NULL ? interleave_run(&t, &files) : records_run(&t, &files);
    status = output_close(&t, status);
    if (status == 0)
        status = judge_finish(&t);
    int failed = records_close(&t);
    status = status != 0 ? status : failed;
    if (status == 0)
        status = t.gate;
    operations_release(&t.operations);
    judge_release(&t);
    string_list_release(&t.label_names);
    options_release(&table, &t, &files);
    return tool_finish(status < 0 ? 0 : status);
}
