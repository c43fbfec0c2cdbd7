/* main.c - ort-tensor: makes, changes, looks at and judges tensors in shell pipes.
 *
 * Files (or stdin) become records; the operations run over each in command-line order; each record
 * is then printed, judged, or written.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensor_tool.h"

#define O(member) offsetof(tool, member)

int fail(const ort_error *err) { return tool_fail(err); }

int tool_env(tool *t, ort_env **env)
{
    int status = t->env != NULL ? 0 : settings_new_env(&t->settings, &t->env);
    *env = t->env;
    return status;
}

int bad_value(const operation *op, const ort_value *in, const char *needs)
{
    char shape[200] = "";
    for (int i = 0; i < ort_value_rank(in) && ort_value_get_kind(in) == ORT_VALUE_TENSOR; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", i > 0 ? "x" : "",
                 (long long)ort_value_dims(in)[i]);
    if (ort_value_get_kind(in) == ORT_VALUE_TENSOR)
        return tool_error(ORT_ERROR_DATA, "%s%s%s: the value is %s [%s], needs %s", op->option,
                          op->argument != NULL ? " " : "",
                          op->argument != NULL ? op->argument : "",
                          ort_dtype_name(ort_value_dtype(in)), shape, needs);
    return tool_error(ORT_ERROR_DATA, "%s: the value is no tensor, needs %s", op->option, needs);
}

int parse_numbers(const char *option, const char *text, double *out, int capacity)
{
    int n = 0;
    const char *p = text;
    while (*p != '\0') {
        char *end;
        double v = strtod(p, &end);
        if (*end == '/' && end != p) {
            char *stop;
            double d = strtod(end + 1, &stop);
            v = stop != end + 1 && d != 0 ? v / d : NAN;
            end = stop;
        }
        if (end == p || isnan(v) || n == capacity || (*end != ',' && *end != '\0')) {
            tool_usage("%s: '%s' is no list of up to %d numbers", option, text, capacity);
            return -1;
        }
        out[n++] = v;
        p = *end == ',' ? end + 1 : end;
    }
    return n;
}

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
        if (strcmp(operations[i].name, row->name) == 0)
            push(target, operations[i].apply, row->name, value);
    return 0;
}

/* --mean and --std together are one operation, where the first of them stands. */
static int add_normalize(void *target, const option_row *row, const char *value)
{
    tool *t = target;
    if (strcmp(row->name, "mean") == 0)
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
     .doc = "npy npz pb safetensors json csv raw wav png jpeg bmp ppm webp"},
    {0, "from", "NAME", OPTION_STRING, O(input_format), .doc = "format of what is read"},
    {0, "dtype", "TYPE", OPTION_STRING, O(dtype), .doc = "element type of raw, csv and json input"},
    {0, "dims", "DIMS", OPTION_STRING, O(shape), .doc = "shape of raw input, as 1x3x224x224"},
    {0, "bytes", NULL, OPTION_FLAG, O(bytes),
     .doc = "files are plain bytes in (uint8) and out (one per element)"},
    {0, "select", "NAMES", OPTION_SPLIT, O(select), .doc = "keep these values of a record"},
    {0, "name", "NAME", OPTION_STRING, O(name), .doc = "call the value so in the output"},
    {0, "stack", NULL, OPTION_FLAG, O(stack), .doc = "several files are one batch"},
    {0, "stream", NULL, OPTION_FLAG, O(stream), .doc = "read records from stdin to the end"},
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

/* ---- records */

static int run_operations(tool *t, const ort_value *in, ort_value **out)
{
    ort_value *present = NULL;
    int status = 0;
    bool sound = t->wav_rate > 0 && ort_value_rank(in) == 2 && !t->keep_channels;
    if (sound)
        status = apply_mono(t, &(operation){.option = "--mono"}, in, &present);
    for (size_t i = 0; i < t->operation_count && status == 0; i++) {
        ort_value *next = NULL;
        const operation *op = &t->operations[i];
        if (ort_value_get_kind(in) != ORT_VALUE_TENSOR)
            status = bad_value(op, in, "a tensor");
        else
            status = op->apply(t, op, present != NULL ? present : in, &next);
        ort_value_free(present);
        present = next;
    }
    *out = present;
    return status;
}

static bool selected(const tool *t, const char *name)
{
    for (size_t i = 0; i < t->select.count; i++)
        if (strcmp(t->select.items[i], name) == 0)
            return true;
    return t->select.count == 0;
}

/* Judge and write one finished record. */
static int finish_record(tool *t, const ort_tensors *record)
{
    int status = 0;
    for (size_t i = 0; i < ort_tensors_count(record) && status == 0; i++) {
        if (t->top > 0)
            status = judge_top(t, ort_tensors_name(record, i), ort_tensors_value(record, i));
    }
    if (status == 0 && t->accuracy != NULL)
        status = judge_accuracy(t, record);
    if (status == 0 && t->compare != NULL)
        status = judge_compare(t, record);
    if (status == 0)
        status = output_record(t, record);
    t->records++;
    return status;
}

static int add_value(tool *t, ort_tensors *record, const char *name, ort_value *value)
{
    ort_error err = {0};
    return ort_tensors_add(record, t->name != NULL ? t->name : name, value, &err) == ORT_OK
               ? 0
               : fail(&err);
}

static int emit_window(tool *t, ort_value *window)
{
    ort_error err = {0};
    ort_tensors *record = NULL;
    if (ort_tensors_new(&record, &err) != ORT_OK)
        return fail(&err);
    int status = add_value(t, record, "input", window);
    if (status == 0)
        status = finish_record(t, record);
    ort_tensors_free(record);
    return status;
}

/* Apply the operations to every selected value; with --chunk each sound becomes many records. */
static int transform(tool *t, const ort_tensors *in, ort_tensors *out, bool *windows)
{
    int status = 0;
    size_t kept = 0;
    for (size_t i = 0; i < ort_tensors_count(in) && status == 0; i++) {
        const char *name = ort_tensors_name(in, i);
        ort_value *value = ort_tensors_value(in, i), *changed = NULL;
        if (!selected(t, name))
            continue;
        kept++;
        status = run_operations(t, value, &changed);
        ort_value *result = changed != NULL ? changed : value;
        if (status == 0 && t->chunk > 0) {
            *windows = true;
            status = each_window(t, result, emit_window);
        } else if (status == 0) {
            status = add_value(t, out, name, result);
        }
        ort_value_free(changed);
    }
    if (status == 0 && kept == 0 && ort_tensors_count(in) > 0)
        return tool_usage("--select: the record has no value of that name; it has '%s'%s",
                          ort_tensors_name(in, 0), ort_tensors_count(in) > 1 ? " and others" : "");
    return status;
}

static int handle(tool *t, const ort_tensors *in)
{
    ort_error err = {0};
    ort_tensors *record = NULL;
    bool windows = false;
    if (ort_tensors_new(&record, &err) != ORT_OK)
        return fail(&err);
    int status = transform(t, in, record, &windows);
    if (status == 0 && !windows)
        status = finish_record(t, record);
    ort_tensors_free(record);
    return status;
}

/* ---- input */

static int load(tool *t, const char *path, ort_tensors **tensors)
{
    ort_error err = {0};
    int64_t dims[16];
    ort_read_options options = ORT_READ_OPTIONS_INIT;
    if (t->input_format != NULL) {
        options.format = ort_format_parse(t->input_format);
        if (options.format == ORT_FORMAT_COUNT)
            return tool_usage("--from: '%s' is none of npy, npz, pb, safetensors, json, csv, raw, "
                              "image, wav", t->input_format);
    }
    if (t->dtype != NULL && (options.dtype = ort_dtype_parse(t->dtype)) == ORT_DTYPE_UNDEFINED)
        return tool_usage("--dtype: '%s' is no element type", t->dtype);
    if (t->shape != NULL) {
        options.rank = option_parse_dims("--dims", t->shape, dims, 16);
        options.dims = dims;
        if (options.rank < 0)
            return EXIT_USAGE;
        if (options.format == ORT_FORMAT_AUTO && t->dtype != NULL)
            options.format = ORT_FORMAT_RAW;
    }
    ort_format by_name = ort_format_of_path(path);
    if (t->bytes && options.format == ORT_FORMAT_AUTO &&
        (by_name == ORT_FORMAT_AUTO || by_name == ORT_FORMAT_RAW) && strcmp(path, "-") != 0) {
        options.format = ORT_FORMAT_RAW;
        options.dtype = ORT_DTYPE_UINT8;
    }
    bool raw = options.format == ORT_FORMAT_RAW ||
               (options.format == ORT_FORMAT_AUTO && by_name == ORT_FORMAT_RAW);
    if (t->shape == NULL && raw)
        options.rank = -1; /* flat */
    if (ort_tensors_load(path, &options, tensors, &err) != ORT_OK)
        return fail(&err);
    t->wav_rate = ort_tensors_sample_rate(*tensors);
    return 0;
}

static int read_stream(tool *t)
{
    for (;;) {
        ort_error err = {0};
        ort_read_options options = {.size = sizeof options, .label = "standard input"};
        ort_tensors *record = NULL;
        if (ort_tensors_read(stdin, &options, &record, &err) != ORT_OK)
            return fail(&err);
        if (record == NULL)
            break;
        int status = handle(t, record);
        ort_tensors_free(record);
        if (status != 0)
            return status;
    }
    if (t->records == 0) {
        return tool_error(ORT_ERROR_IO, "standard input: empty");
    }
    return 0;
}

/* Values of one name from several files as a batch: along a first axis of size 1, or a new one. */
static int stack(tool *t, ort_tensors *const *records, size_t count, ort_tensors **batch)
{
    ort_error err = {0};
    operation op = {.option = "--stack"};
    int status = 0;
    if (ort_tensors_new(batch, &err) != ORT_OK)
        return fail(&err);
    for (size_t i = 0; i < ort_tensors_count(records[0]) && status == 0; i++) {
        const ort_value *first = ort_tensors_value(records[0], i);
        ort_value *out = NULL;
        int64_t dims[16];
        int rank = ort_value_rank(first);
        bool joined = rank > 0 && ort_value_dims(first)[0] == 1;
        if (ort_value_get_kind(first) != ORT_VALUE_TENSOR || rank > 14 ||
            ort_value_dtype(first) == ORT_DTYPE_STRING)
            return bad_value(&op, first, "a numeric tensor");
        dims[0] = (int64_t)count;
        for (int k = joined ? 1 : 0; k < rank; k++)
            dims[k + (joined ? 0 : 1)] = ort_value_dims(first)[k];
        if (ort_value_new_tensor(ort_value_dtype(first), rank + (joined ? 0 : 1), dims, &out,
                                 &err) != ORT_OK)
            return fail(&err);
        size_t bytes = ort_value_bytes(first);
        for (size_t r = 0; r < count && status == 0; r++) {
            ort_value *v = ort_tensors_value(records[r], i);
            if (v == NULL || ort_value_bytes(v) != bytes ||
                ort_value_dtype(v) != ort_value_dtype(first))
                status = bad_value(&op, v != NULL ? v : first,
                                   "the same type and shape everywhere");
            else
                memcpy((char *)ort_value_data(out) + r * bytes, ort_value_data(v), bytes);
        }
        if (status == 0)
            status = add_value(t, *batch, ort_tensors_name(records[0], i), out);
        ort_value_free(out);
    }
    return status;
}

/* Operations run on each file, then the results are stacked, so that pictures of many sizes can
 * become one batch. */
static int stack_files(tool *t, const string_list *files)
{
    ort_error err = {0};
    ort_tensors **records = tool_alloc(files->count * sizeof *records), *batch = NULL;
    int status = 0;
    for (size_t i = 0; i < files->count && status == 0; i++) {
        ort_tensors *in = NULL;
        bool windows = false;
        status = load(t, files->items[i], &in);
        if (status == 0 && ort_tensors_new(&records[i], &err) != ORT_OK)
            status = fail(&err);
        if (status == 0)
            status = transform(t, in, records[i], &windows);
        ort_tensors_free(in);
    }
    if (status == 0)
        status = stack(t, records, files->count, &batch);
    if (status == 0)
        status = finish_record(t, batch);
    for (size_t i = 0; i < files->count; i++)
        ort_tensors_free(records[i]);
    ort_tensors_free(batch);
    free(records);
    return status;
}

static int run(tool *t, const string_list *files)
{
    int status = 0;
    bool from_stdin = files->count == 0 || (files->count == 1 && strcmp(files->items[0], "-") == 0);
    if (from_stdin && isatty(STDIN_FILENO))
        return tool_usage("no FILE given and standard input is a terminal");
    if (from_stdin && t->input_format == NULL && t->dtype == NULL)
        return read_stream(t);
    if (t->stack && files->count > 0)
        return stack_files(t, files);
    for (size_t i = 0; i < (files->count > 0 ? files->count : 1) && status == 0; i++) {
        ort_tensors *in = NULL;
        status = load(t, files->count > 0 ? files->items[i] : "-", &in);
        if (status == 0)
            status = handle(t, in);
        ort_tensors_free(in);
    }
    return status;
}

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
        status = run(&t, &files);
    if (status == 0)
        status = judge_finish(&t);
    if (status == 0)
        status = t.gate;
    for (size_t i = 0; i < t.operation_count; i++)
        free((char *)t.operations[i].option);
    free(t.operations);
    judge_release(&t);
    options_release(&table, &t, &files);
    ort_env_free(t.env);
    return tool_finish(status < 0 ? 0 : status);
}
