/* main.c - ort-draw: lists and draws what a network said of a picture or a sound.
 *
 * Tensors come from stdin (or -i), a record per picture in the order of the pictures; lists go to
 * stdout, pictures where -o says. Without -o nothing is drawn, and no library is opened to draw.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/labels.h"
#include "draw.h"

static const option_row rows[] = {
#define OPTION_TARGET draw_tool
#define OPTION OPTION_ROW
#define GROUP OPTION_HEADING
#define ROWS OPTION_ROWS
#include "options.def"
    {0},
};

static const option_row *const groups[] = {rows, settings_talk_rows, NULL};
static const option_table table = {
    "[PICTURE...|SOUND]",
    "Lists and draws what a network said: boxes, areas, maps of numbers, curves.",
    groups,
    "Examples:\n"
    "  ort-tensor photo.jpg --letterbox 416+0+0 --fill 114 --bgr --layout nchw --cast float |\n"
    "    ort-run yolox.onnx - | ort-draw photo.jpg --detect yolox --letterbox 416+0+0 -o seen.png\n"
    "  ort-run text.onnx x.npy -o - | ort-draw page.png --mask -o marked.png\n"
    "  ort-draw speech.wav --curve -i probabilities.npy --labels names.txt -o speech.png\n",
    .common = "detect|mask|curve|input|output|labels|letterbox|stretch|score|json",
};

/* ---- pictures and sounds */

/* How the picture became the input: what boxes and masks are mapped back with. */
static int plan_fit(const draw_tool *t, source *from)
{
    int64_t height = t->canvas.height, width = t->canvas.width < 0 ? height : t->canvas.width;
    bool shares = t->detect != NULL &&
                  (!strcmp(t->detect, "ultraface") || !strcmp(t->detect, "ssd"));
    if (from->value != NULL && from->rate == 0) {
        height = ort_value_dims(from->value)[0];
        width = ort_value_dims(from->value)[1];
    }
    fit_size input = t->canvas;
    if (input.height == 0) {
        if (t->detect != NULL && (!shares || from->value == NULL))
            return tool_usage("--detect %s needs --letterbox N or --stretch HxW: how the picture "
                              "became the network's input", t->detect);
        input = (fit_size){height, width, -1, -1};
    }
    if (height > 0 && !fit_plan(&from->fit, height, width, &input, t->letterbox != NULL))
        return tool_usage("--letterbox %s: a picture of %lldx%lld does not fit there", t->letterbox,
                          (long long)height, (long long)width);
    return 0;
}

static int open_source(const draw_tool *t, const char *path, source *from)
{
    ort_error err = {0};
    ort_read_options options = ORT_READ_OPTIONS_INIT;
    *from = (source){.path = path};
    if (path == NULL)
        return plan_fit(t, from);
    if (ort_tensors_load(path, &options, &from->tensors, &err) != ORT_OK)
        return tool_fail(&err);
    from->value = ort_tensors_value(from->tensors, 0);
    from->rate = ort_tensors_sample_rate(from->tensors);
    bool picture = from->value != NULL && from->rate == 0 && ort_value_rank(from->value) == 3 &&
                   ort_value_dtype(from->value) == ORT_DTYPE_UINT8 &&
                   ort_value_dims(from->value)[2] <= 4 && ort_value_count(from->value) > 0;
    if (t->curve != NULL && from->rate == 0)
        return tool_error(ORT_ERROR_DATA, "%s: --curve takes a sound (WAV)", path);
    if (t->curve == NULL && !picture)
        return tool_error(ORT_ERROR_DATA, "%s: is no picture", path);
    return plan_fit(t, from);
}

/* ---- records */

static int draw_record(draw_tool *t, const ort_tensors *record, const char *path)
{
    source from;
    int status = open_source(t, path, &from);
    if (status == 0 && t->detect != NULL)
        status = boxes_record(t, record, &from);
    else if (status == 0 && t->mask != NULL)
        status = mask_record(t, record, &from);
    else if (status == 0)
        status = map_record(t, record, &from);
    ort_tensors_free(from.tensors);
    if (status == 0 && fflush(stdout) != 0)
        status = tool_error(ORT_ERROR_IO, "standard output: %s", strerror(errno));
    return status;
}

typedef struct record_source {
    FILE *stream;      /* of records, or */
    ort_tensors *only; /* one record; NULL once it is taken */
    const char *label;
} record_source;

/* The next record, or NULL at the end. */
static int next_record(record_source *from, ort_tensors **record)
{
    ort_error err = {0};
    ort_read_options options = {.size = sizeof options, .label = from->label};
    *record = from->only;
    from->only = NULL;
    if (from->stream == NULL)
        return 0;
    return ort_tensors_read(from->stream, &options, record, &err) == ORT_OK ? 0 : tool_fail(&err);
}

/* What came, once its record is in hand. */
static int take_record(draw_tool *t, const ort_tensors *record, curves **all,
                       const string_list *pictures, const char *label)
{
    if (t->curve != NULL)
        return curves_add(t, all, record);
    if (pictures->count > 0 && t->records >= pictures->count)
        return tool_error(ORT_ERROR_DATA, "%s: holds more records than the %zu pictures", label,
                          pictures->count);
    return draw_record(t, record, pictures->count > 0 ? pictures->items[t->records] : NULL);
}

static int draw_curves(draw_tool *t, const curves *all, const string_list *sounds)
{
    source from = {0};
    int status = open_source(t, sounds->count > 0 ? sounds->items[0] : NULL, &from);
    t->records = 0; /* one picture comes of all */
    if (status == 0)
        status = curves_finish(t, all, &from);
    ort_tensors_free(from.tensors);
    return status;
}

static int draw_stream(draw_tool *t, record_source *from, const string_list *pictures)
{
    ort_tensors *record = NULL;
    curves *all = NULL;
    int status;
    while ((status = next_record(from, &record)) == 0 && record != NULL) {
        status = take_record(t, record, &all, pictures, from->label);
        ort_tensors_free(record);
        if (status != 0)
            break;
        t->records++;
    }
    if (status == 0 && t->records == 0)
        status = tool_error(ORT_ERROR_DATA, "%s: empty", from->label);
    else if (status == 0 && t->curve != NULL)
        status = draw_curves(t, all, pictures);
    else if (status == 0 && t->records < pictures->count)
        status = tool_error(ORT_ERROR_DATA, "%s: ends before '%s', picture %zu of %zu", from->label,
                            pictures->items[t->records], t->records + 1, pictures->count);
    curves_free(all);
    return status;
}

/* ---- the command line */

static int check(draw_tool *t, const string_list *pictures)
{
    if (t->detect == NULL && t->mask == NULL && t->map == NULL && t->curve == NULL)
        return tool_usage("one of --detect, --mask, --map and --curve is wanted");
    if (t->map != NULL && pictures->count > 0)
        return tool_usage("--map takes no picture; --mask draws on one");
    if (t->curve != NULL && pictures->count > 1)
        return tool_usage("--curve takes one sound");
    const bool piped = t->tensors == NULL || !strcmp(t->tensors, "-");
    if (t->labels_file != NULL && !strcmp(t->labels_file, "-") &&
        (piped || count_dashes(pictures) > 0))
        return tool_usage("--labels and what is drawn can't both come from stdin");
    if (count_dashes(pictures) + piped > 1)
        return tool_usage("tensors and a picture can't both come from stdin: -i FILE");
    if (t->tensors == NULL && isatty(STDIN_FILENO))
        return tool_usage("no tensors: -i FILE or a pipe is wanted, and standard input is a "
                          "terminal");
    if (t->output != NULL && strcmp(t->output, "-") && !whole_file_is_special(t->output) &&
        ort_format_of_path(t->output) != ORT_FORMAT_IMAGE)
        return tool_usage("-o: '%s' is the name of no picture; pictures are %s", t->output,
                          ort_format_words(ORT_FORMAT_IMAGE));
    if (t->output != NULL && !strcmp(t->output, "-") &&
        !tool_may_write_binary(stdout, t->settings.force))
        return EXIT_USAGE;
    if (t->letterbox != NULL || t->stretch != NULL)
        return fit_parse_size(t->letterbox != NULL ? "--letterbox" : "--stretch",
                              t->letterbox != NULL ? t->letterbox : t->stretch, &t->canvas);
    return 0;
}

/* The tensors of a file: .npy and .npz may hold a stream of records, other formats hold one. */
static int draw_file(draw_tool *t, const string_list *pictures)
{
    ort_error err = {0};
    ort_read_options options = ORT_READ_OPTIONS_INIT;
    ort_format format = ort_format_of_path(t->tensors);
    record_source from = {.label = t->tensors};
    if (format == ORT_FORMAT_NPY || format == ORT_FORMAT_NPZ) {
        from.stream = fopen(t->tensors, "rb");
        if (from.stream == NULL)
            return tool_error(ORT_ERROR_IO, "%s: %s", t->tensors, strerror(errno));
    } else if (ort_tensors_load(t->tensors, &options, &from.only, &err) != ORT_OK) {
        return tool_fail(&err);
    }
    int status = draw_stream(t, &from, pictures);
    if (from.stream != NULL)
        fclose(from.stream);
    ort_tensors_free(from.only);
    return status;
}

static int run(draw_tool *t, const string_list *pictures)
{
    if (t->tensors != NULL && strcmp(t->tensors, "-"))
        return draw_file(t, pictures);
    return draw_stream(t, &(record_source){.stream = stdin, .label = "standard input"}, pictures);
}

int main(int argc, char **argv)
{
    draw_tool t = {.score = 0.5, .iou = 0.45, .opacity = 0.5, .most = 100};
    string_list pictures = {0};
    tool_init("ort-draw");
    settings_init(&t.settings);
    int status = options_parse(&table, argc, argv, &t, &pictures);
    if (status == 0)
        status = settings_resolve(&t.settings);
    if (status == 0)
        status = check(&t, &pictures);
    if (status == 0)
        status = labels_load(t.labels_file, &t.labels);
    if (status == 0)
        status = run(&t, &pictures);
    if (t.direct != NULL)
        status = whole_file_close(t.direct, status);
    status = whole_files_close(&t.waiting, status);
    string_list_release(&t.labels);
    options_release(&table, &t, &pictures);
    ort_env_free(t.env);
    return tool_finish(status < 0 ? 0 : status);
}
