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

#define O(member) offsetof(tool, member)

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
    {0, "", NULL, OPTION_GROUP, 0, .doc = "Reading and writing"},
    {'o', "output", "FILE", OPTION_LIST, O(saves),
     .doc = "where the result goes, format by its name; '-' is stdout"},
    {0, "format", "NAME", OPTION_STRING, O(format),
     .doc = "format of what is written, whatever -o says", .words = &formats_written},
    {0, "from", "NAME", OPTION_STRING, O(input_format),
     .doc = "format of what is read, whatever the names of files say", .words = &formats_read},
    {0, "id", "COLUMNS", OPTION_SPLIT, O(ids),
     .doc = "columns of a table (names, or numbers from 1) that go along beside the values"},
    {0, "drop", "COLUMNS", OPTION_SPLIT, O(drops), .doc = "columns of a table to leave out"},
    {0, "dtype", "TYPE", OPTION_STRING, O(dtype), .doc = "element type of raw, csv and json input"},
    {0, "dims", "DIMS", OPTION_STRING, O(shape), .doc = "shape of raw input, as 1x3x224x224"},
    {0, "bytes", NULL, OPTION_FLAG, O(bytes),
     .doc = "files are plain bytes in (uint8) and out (one per element)"},
    {0, "select", "NAMES", OPTION_SPLIT, O(select), .doc = "keep these values of a record"},
    {0, "name", "NAME", OPTION_STRING, O(name), .doc = "call the value so in the output"},
    {0, "stack", NULL, OPTION_FLAG, O(stack), .doc = "all records are one batch"},
    {0, "stream", NULL, OPTION_FLAG, O(stream),
     .doc = "read every record of the files or of stdin: files one after another"},
    {0, "keep-going", NULL, OPTION_FLAG, O(keep_going),
     .doc = "leave out what can't be read or changed; exit 5 at the end, with the names"},
    {0, "plain", NULL, OPTION_FLAG, O(plain),
     .doc = "JSON as bare lists, without element types"},
    {0, "names", NULL, OPTION_FLAG, O(names),
     .doc = "CSV with a first column of file names"},
    {0, "quality", "N", OPTION_INT, O(quality), .doc = "of JPEG and WebP, 1 to 100",
     .positive = true, .max = 100},
    {0, "", NULL, OPTION_GROUP, 0, .doc = "Operations, in the order written"},
    OP("resize", "N|HxW", "shorter side to N, or height and width"),
    {0, "filter", "NAME", OPTION_STRING, O(filter),
     .doc = "of --resize: nearest box bilinear hamming bicubic lanczos",
     .needs = "resize|letterbox",
     .choices = "nearest|box|bilinear|hamming|bicubic|lanczos"},
    OP("crop", "N|HxW[+Y+X]", "the centre, or at row Y and column X"),
    OP("pad", "N|HxW[+Y+X]", "onto a larger canvas"),
    OP("letterbox", "N|HxW[+Y+X]", "scaled to fit, in the centre or at row Y, column X"),
    {0, "fill", "V", OPTION_STRING, O(fill), .doc = "value of --pad and --letterbox (default 0)",
     .needs = "pad|letterbox"},
    OP("gray", NULL, "luma of an RGB image"),
    OP("bgr", NULL, "swap red and blue"),
    {0, "mean", "LIST", OPTION_CALL, 0,
     .doc = "to NCHW float in 0..1, minus the mean", .set = add_normalize, .again = AGAIN_REFUSED},
    {0, "std", "LIST", OPTION_CALL, 0,
     .doc = "... and divided by the standard deviation", .set = add_normalize,
     .again = AGAIN_REFUSED},
    OP("float", NULL, "to NCHW float in 0..1"),
    OP("layout", "NAME", "hwc, chw, nhwc or nchw"),
    OP("scale", "A[,B]", "x * A + B as float; 1/255 is a number"),
    OP("cast", "TYPE", "to another element type"),
    OP("reshape", "DIMS", "to another shape; -1 is what is left"),
    OP("transpose", "AXES", "as 0,2,3,1"),
    OP("slice", "SPEC", "as numpy: 0,:,2:10"),
    OP("squeeze", NULL, "drop dimensions of size 1"),
    OP("unsqueeze", "AXES", "add dimensions of size 1"),
    OP("argmax", "AXIS", "index of the largest"),
    OP("softmax", "AXIS", "to probabilities"),
    OP("mono", NULL, "mix channels (frames x channels to frames); done for WAV files by itself"),
    {0, "keep-channels", NULL, OPTION_FLAG, O(keep_channels),
     .doc = "don't mix the channels of a WAV file"},
    OP("rate", "HZ", "resample sound"),
    {0, "chunk", "N", OPTION_INT, O(chunk),
     .doc = "cut sound into windows of N samples, a record each", .positive = true},
    {0, "hop", "N", OPTION_INT, O(hop), .doc = "distance of the windows (default: N)",
     .needs = "chunk", .positive = true},
    {0, "context", "K", OPTION_INT, O(context), .doc = "samples before each window",
     .needs = "chunk"},
    {0, "", NULL, OPTION_GROUP, 0, .doc = "Looking and judging"},
    {0, "print", NULL, OPTION_FLAG, O(print), .doc = "type, shape, statistics, first elements"},
    {0, "items", "N", OPTION_INT, O(print_items), .doc = "elements that --print shows",
     .needs = "print"},
    {0, "top", "K", OPTION_INT, O(top), .doc = "the K best classes of each row",
     .positive = true},
    {0, "labels", "FILE", OPTION_STRING, O(labels), .doc = "names of the classes, a line each",
     .needs = "top"},
    {0, "compare", "FILE", OPTION_STRING, O(compare), .doc = "exit 1 when the values differ",
     .gate = true},
    {0, "rtol", "X", OPTION_DOUBLE, O(rtol), .doc = "relative tolerance (default 1e-3)",
     .needs = "compare"},
    {0, "atol", "X", OPTION_DOUBLE, O(atol), .doc = "absolute tolerance (default 1e-5)",
     .needs = "compare"},
    {0, "accuracy", "FILE", OPTION_STRING, O(accuracy),
     .doc = "share of rows whose best class is right"},
    {0, "min-accuracy", "X", OPTION_DOUBLE, O(min_accuracy), .doc = "exit 1 below this, 0 to 1",
     .needs = "accuracy", .max = 1, .gate = true},
    {0, "confusion", NULL, OPTION_FLAG, O(confusion),
     .doc = "with --accuracy: who is taken for whom",
     .needs = "accuracy"},
    {0, "", NULL, OPTION_GROUP, 0, .doc = "Everything else"},
    SETTINGS_TALK(tool, settings),
    {0},
};

static const option_row *const groups[] = {rows, NULL};
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
    tool t = {.normalize_at = -1, .rtol = 1e-3, .atol = 1e-5, .print_items = 16};
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
