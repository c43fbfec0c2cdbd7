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

static const struct {
    const char *name;
    operation_fn *apply;
} operations[] = {
    {"resize", apply_resize},     {"crop", apply_crop},           {"pad", apply_pad},
    {"letterbox", apply_letterbox},
    {"layout", apply_layout},     {"float", apply_normalize},     {"scale", apply_scale},
    {"gray", apply_gray},         {"bgr", apply_bgr},             {"cast", apply_cast},
    {"reshape", apply_reshape},   {"transpose", apply_transpose}, {"slice", apply_slice},
    {"argmax", apply_argmax},     {"softmax", apply_softmax},     {"squeeze", apply_squeeze},
    {"unsqueeze", apply_unsqueeze}, {"mono", apply_mono},         {"rate", apply_rate},
};

static void push(tool *t, operation_fn *apply, const char *name, const char *argument)
{
    t->operations = realloc(t->operations, (t->operation_count + 1) * sizeof *t->operations);
    if (t->operations == NULL)
        tool_alloc(SIZE_MAX / 2);
    t->operations[t->operation_count++] = (operation){apply, tool_printf("--%s", name), argument};
}

static int add_operation(void *target, const option_row *row, const char *value)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (!strcmp(operations[i].name, row->name))
            push(target, operations[i].apply, row->name, value);
    return 0;
}

/* --mean and --std together are one operation, where the first of them stands. */
static int add_normalize(void *target, const option_row *row, const char *value)
{
    tool *t = target;
    if (!strcmp(row->name, "mean"))
        t->mean = value;
    else
        t->std = value;
    if (t->normalize_at < 0) {
        t->normalize_at = (int)t->operation_count;
        push(t, apply_normalize, row->name, NULL);
    }
    return 0;
}

#define OP(name_, argument_, doc_)                                                                \
    {0, name_, argument_, OPTION_CALL, 0, .doc = doc_, .set = add_operation}

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
    tool t = {.normalize_at = -1, .rtol = -1, .atol = -1, .min_sqnr = -1, .min_cosine = -1,
               .print_items = 16};
    string_list files = {0};
    tool_init("ort-tensor");
    settings_init(&t.settings);
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
        status = records_run(&t, &files);
    status = output_close(&t, status);
    if (status == 0)
        status = judge_finish(&t);
    int failed = records_close(&t);
    status = status != 0 ? status : failed;
    if (status == 0)
        status = t.gate;
    for (size_t i = 0; i < t.operation_count; i++)
        free((char *)t.operations[i].option);
    free(t.operations);
    judge_release(&t);
    string_list_release(&t.label_names);
    options_release(&table, &t, &files);
    ort_env_free(t.env);
    return tool_finish(status < 0 ? 0 : status);
}
