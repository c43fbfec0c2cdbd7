/* gates.c - the gates of ort-tensor: --compare and --min-accuracy.
 *
 * A gate that compared nothing, or fewer records or labels than there are, never passes: it ends
 * with EXIT_DATA.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats.h"
#include "common/nearness.h"
#include "common/screen.h"
#include "tensor_tool.h"

/* ---- the values that --compare names: one record for all, or one for each */

static int next_expected(tool *t, ort_tensors **record)
{
    ort_error err = {0};
    bool from_stdin = !strcmp(t->compare, "-");
    ort_read_options options = {.size = sizeof options,
                                .label = from_stdin ? "standard input" : t->compare};
    if (t->expected_stream == NULL)
        t->expected_stream = from_stdin ? stdin : fopen(t->compare, "rbe");
    if (t->expected_stream == NULL)
        return tool_error(ORT_ERROR_IO, "%s: can't open: %s", t->compare, strerror(errno));
    if (ort_tensors_read(t->expected_stream, &options, record, &err) != ORT_OK)
        return tool_fail(&err);
    t->expected_count += *record != NULL;
    return 0;
}

static int take_expected(tool *t)
{
    ort_tensors *next = NULL;
    if (t->expected != NULL && t->expected_all)
        return 0;
    int status = next_expected(t, &next);
    if (status != 0)
        return status;
    if (next == NULL && t->expected_count == 1) {
        t->expected_all = true;
        return 0;
    }
    if (next == NULL && t->expected_count > 1)
        return tool_error(ORT_ERROR_DATA, "%s: holds %zu records, compared with more", t->compare,
                          t->expected_count);
    if (next == NULL || ort_tensors_count(next) == 0) {
        ort_tensors_free(next);
        return tool_error(ORT_ERROR_DATA, "%s: holds no value: nothing was compared", t->compare);
    }
    ort_tensors_free(t->expected);
    t->expected = next;
    return 0;
}

static int find_value(const ort_tensors *record, const char *name)
{
    for (size_t i = 0; i < ort_tensors_count(record); i++)
        if (name[0] != '\0' && !strcmp(ort_tensors_name(record, i), name))
            return (int)i;
    return -1;
}

/* By name when the two records share any, else by position. */
static int match_values(const tool *t, const ort_tensors *record, int *match)
{
    size_t n = ort_tensors_count(record), m = ort_tensors_count(t->expected), shared = 0;
    if (n != m)
        return tool_error(ORT_ERROR_DATA, "%s: holds %zu values, compared with %zu", t->compare, m,
                          n);
    for (size_t i = 0; i < n; i++) {
        match[i] = find_value(t->expected, ort_tensors_name(record, i));
        shared += match[i] >= 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (match[i] < 0 && shared > 0)
            return tool_error(ORT_ERROR_DATA, "%s: has no value '%s' to compare with", t->compare,
                              ort_tensors_name(record, i));
        match[i] = match[i] < 0 ? (int)i : match[i];
    }
    return 0;
}

/* The smaller one; NaN stays. */
static double lesser(double least, double next)
{
    return isnan(least) || least <= next ? least : next;
}

/* Says which limit the distance is below; false: none. */
static bool falls_short(tool *t, const char *name, const ort_distance *distance)
{
    char text[24];
    double sqnr = ort_distance_sqnr_db(distance), cosine = ort_distance_cosine(distance);
    bool low_sqnr = t->min_sqnr >= 0 && !(sqnr >= t->min_sqnr);
    bool low_cosine = t->min_cosine >= 0 && !(cosine >= t->min_cosine);
    t->least_sqnr = t->measured == 0 ? sqnr : lesser(t->least_sqnr, sqnr);
    t->least_cosine = t->measured == 0 ? cosine : lesser(t->least_cosine, cosine);
    t->measured++;
    if (low_sqnr)
        tool_error(ORT_ERROR_GATE, "the SQNR of '%s' (%s) is below %g dB", name,
                   nearness_sqnr(sqnr, text, sizeof text), t->min_sqnr);
    if (low_cosine)
        tool_error(ORT_ERROR_GATE, "the cosine of '%s' (%.6f) is below %g", name, cosine,
                   t->min_cosine);
    return low_sqnr || low_cosine;
}

static void say_difference(const char *name, const ort_difference *d, bool good,
                           const ort_distance *distance, const part_sums *p)
{
    char text[200];
    worst_part worst;
    screen_verdict(stdout, good);
    screen_printf(stdout, "%s: %s", name, d->text);
    if (distance != NULL && !(d->equal && d->max_abs == 0))
        screen_printf(stdout, "; %s", nearness_text(distance, text, sizeof text));
    if (parts_worst(p, &worst) && worst.sqnr_db < ort_distance_sqnr_db(distance))
        screen_printf(stdout, "; %s", part_text(&worst, text, sizeof text));
    putchar('\n');
}

/* Tolerances decide where they are given, or nothing else is. Strings and what has another shape
 * have no distance: of these the tolerances always decide. */
static int compare_value(tool *t, const char *name, const ort_value *value,
                         const ort_value *expected)
{
    ort_error err = {0};
    ort_difference d = ORT_DIFFERENCE_INIT;
    ort_distance distance = ORT_DISTANCE_INIT;
    ort_compare_options options = {.size = sizeof options,
                                   .rtol = t->rtol >= 0 ? t->rtol : 1e-3,
                                   .atol = t->atol >= 0 ? t->atol : 1e-5};
    if (ort_value_compare(value, expected, &options, &d, &err) != ORT_OK)
        return tool_fail(&err);
    bool measured =
        value && expected && ort_distance_add(&distance, expected, value, NULL) == ORT_OK;
    part_sums p = {0};
    if (measured)
        parts_add(&p, expected, value);
    bool limits = measured && (t->min_sqnr >= 0 || t->min_cosine >= 0);
    bool tolerances = !limits || t->rtol >= 0 || t->atol >= 0;
    bool good = d.equal || !tolerances;
    t->compared++;
    t->differing += !good;
    if (limits && falls_short(t, name, &distance))
        good = false;
    if (!good)
        t->gate = EXIT_GATE;
    if (t->settings.json)
        report_difference(t, name, &d, good, measured ? &distance : NULL, &p);
    else
        say_difference(name[0] != '\0' ? name : "value", &d, good, measured ? &distance : NULL, &p);
    parts_release(&p);
    return 0;
}

int judge_compare(tool *t, const ort_tensors *record)
{
    int status = take_expected(t);
    size_t n = ort_tensors_count(record);
    int *match = tool_alloc((n + 1) * sizeof *match);
    if (status == 0)
        status = match_values(t, record, match);
    for (size_t i = 0; i < n && status == 0; i++)
        status = compare_value(t, ort_tensors_name(record, i), ort_tensors_value(record, i),
                               ort_tensors_value(t->expected, (size_t)match[i]));
    free(match);
    return status;
}

static int finish_compare(tool *t)
{
    ort_tensors *more = NULL;
    if (t->compared == 0)
        return tool_error(ORT_ERROR_DATA, "--compare: there was no value: nothing was compared");
    int status = t->expected_all ? 0 : next_expected(t, &more);
    if (status == 0 && more != NULL)
        status = tool_error(ORT_ERROR_DATA, "%s: holds more records than the %zu compared with it",
                            t->compare, t->records);
    ort_tensors_free(more);
    return status;
}

/* ---- accuracy and confusion */

enum { NO_CLASS = -1, MOST_CLASSES = 4096 };

/* The class of a row; NO_CLASS where a score is NaN. */
static int64_t predicted(const ort_value *v, int64_t row, int64_t classes)
{
    int64_t best = 0;
    for (int64_t c = 0; c < classes; c++) {
        double score = ort_value_get_double(v, row * classes + c);
        if (isnan(score))
            return NO_CLASS;
        if (score > ort_value_get_double(v, row * classes + best))
            best = c;
    }
    return best;
}

/* A number that stands for a class; NO_CLASS when it doesn't. */
static int64_t class_of(const ort_value *v, int64_t index)
{
    double number = ort_value_get_double(v, index);
    return number >= 0 && number < 0x1p53 && number == floor(number) ? (int64_t)number : NO_CLASS;
}

/* The matrix is as large as the labels and what was taken for them; a row of NaN is in none. */
static int count_pair(tool *t, int64_t truth, int64_t guess)
{
    int64_t need = (truth > guess ? truth : guess) + 1;
    need = need > t->most_label + 1 ? need : t->most_label + 1;
    if (guess < 0)
        return 0;
    if (need > MOST_CLASSES)
        return tool_error(ORT_ERROR_DATA, "--confusion: a table of %" PRId64 " classes, %d at most "
                          "can be shown", need, MOST_CLASSES);
    if (need > t->classes) {
        int64_t *grown = tool_alloc((size_t)(need * need) * sizeof *grown);
        for (int64_t r = 0; r < t->classes; r++)
            memcpy(grown + r * need, t->matrix + r * t->classes,
                   (size_t)t->classes * sizeof *grown);
        free(t->matrix);
        t->matrix = grown;
        t->classes = need;
    }
    t->matrix[truth * t->classes + guess]++;
    return 0;
}

static int load_truth(tool *t)
{
    ort_error err = {0};
    ort_read_options read = ORT_READ_OPTIONS_INIT;
    if (t->truth != NULL)
        return 0;
    if (ort_tensors_load(t->accuracy, &read, &t->truth, &err) != ORT_OK)
        return tool_fail(&err);
    const ort_value *labels = ort_tensors_value(t->truth, 0);
    if (labels == NULL || ort_value_get_kind(labels) != ORT_VALUE_TENSOR ||
        ort_value_dtype(labels) == ORT_DTYPE_STRING || ort_value_count(labels) == 0)
        return tool_error(ORT_ERROR_DATA, "%s: holds no labels (numbers of classes)", t->accuracy);
    for (int64_t i = 0; i < ort_value_count(labels); i++) {
        int64_t class = class_of(labels, i);
        if (class == NO_CLASS)
            return tool_error(ORT_ERROR_DATA, "%s: label %" PRId64 " is %g, which is no class",
                              t->accuracy, i, ort_value_get_double(labels, i));
        t->most_label = class > t->most_label ? class : t->most_label;
    }
    return 0;
}

int judge_accuracy(tool *t, const ort_tensors *record)
{
    operation op = {.option = "--accuracy"};
    const ort_value *value = ort_tensors_value(record, 0);
    if (ort_tensors_count(record) > 1)
        return tool_usage("--accuracy: of several values --select NAME says which are the scores; "
                          "there are '%s', '%s'%s", ort_tensors_name(record, 0),
                          ort_tensors_name(record, 1),
                          ort_tensors_count(record) > 2 ? ", ..." : "");
    int status = load_truth(t);
    if (status != 0 || value == NULL)
        return status;
    const ort_value *truth = ort_tensors_value(t->truth, 0);
    if (ort_value_get_kind(value) != ORT_VALUE_TENSOR ||
        ort_value_dtype(value) == ORT_DTYPE_STRING)
        return bad_value(&op, value, "numeric scores");
    int rank = ort_value_rank(value);
    int64_t classes = rank >= 2 ? ort_value_dims(value)[rank - 1] : 1;
    if (rank >= 2 && classes == 1 && dtype_is_float(ort_value_dtype(value)))
        return bad_value(&op, value, "a score per class: of one column each row would be right");
    int64_t rows = classes > 0 ? ort_value_count(value) / classes : 0;
    for (int64_t r = 0; r < rows && status == 0; r++) {
        int64_t at = (int64_t)t->judged;
        if (at >= ort_value_count(truth))
            return tool_error(ORT_ERROR_DATA, "%s: holds %" PRId64 " labels, there are more rows",
                              t->accuracy, ort_value_count(truth));
        int64_t label = class_of(truth, at);
        int64_t guess = classes > 1 ? predicted(value, r, classes) : class_of(value, r);
        t->judged++;
        t->correct += label == guess;
        t->classless += guess == NO_CLASS;
        if (t->confusion)
            status = count_pair(t, label, guess);
    }
    return status;
}

static void print_accuracy(const tool *t, double accuracy)
{
    printf("accuracy %.4f (%.0f of %.0f)\n", accuracy, t->correct, t->judged);
    if (t->classless > 0)
        printf("%.0f rows are NaN or no class: counted as wrong\n", t->classless);
    for (int64_t r = 0; t->confusion && r <= t->classes; r++) {
        printf(r == 0 ? "true\\said" : "%9" PRId64, r - 1);
        for (int64_t c = 0; c < t->classes; c++)
            printf("%7" PRId64, r == 0 ? c : t->matrix[(r - 1) * t->classes + c]);
        putchar('\n');
    }
}

static int finish_accuracy(tool *t)
{
    int64_t labels = t->truth != NULL ? ort_value_count(ort_tensors_value(t->truth, 0)) : 0;
    if (t->judged == 0)
        return tool_error(ORT_ERROR_DATA, "--accuracy: there was no row: nothing was judged");
    if (t->judged < (double)labels)
        return tool_error(ORT_ERROR_DATA, "%s: holds %" PRId64 " labels, there are %.0f rows",
                          t->accuracy, labels, t->judged);
    double accuracy = t->correct / t->judged;
    bool low = accuracy < t->min_accuracy;
    if (t->settings.json)
        report_accuracy(t, accuracy, !low);
    else
        print_accuracy(t, accuracy);
    if (low) {
        tool_error(ORT_ERROR_GATE, "accuracy %.4f is below %.4f", accuracy, t->min_accuracy);
        t->gate = EXIT_GATE;
    }
    return 0;
}

/* Reports and tensors don't share stdout, the judged values and their reference not stdin. */
int judge_check(const tool *t, const string_list *files)
{
    bool told = t->top > 0 || t->compare != NULL || t->accuracy != NULL || t->print ||
                t->settings.json;
    size_t dashes = files->count == 0;
    for (size_t i = 0; i < t->saves.count; i++)
        if (told && !strcmp(t->saves.items[i], "-"))
            return tool_usage("the report and the tensors can't both go to stdout: -o FILE");
    for (size_t i = 0; i < files->count; i++)
        dashes += !strcmp(files->items[i], "-");
    dashes += t->compare != NULL && !strcmp(t->compare, "-");
    dashes += t->accuracy != NULL && !strcmp(t->accuracy, "-");
    dashes += t->labels != NULL && !strcmp(t->labels, "-");
    if (t->quality > 0 && !formats_any(t->format, &t->saves, ORT_FORMAT_TAKES_QUALITY))
        return tool_usage("--quality is of JPEG and WebP: no -o names one");
    if (t->plain && !formats_any(t->format, &t->saves, ORT_FORMAT_TAKES_PLAIN))
        return tool_usage("--plain is of JSON: no -o names such a file, nor does --format");
    if (t->names && !formats_any(t->format, &t->saves, ORT_FORMAT_ROWS))
        return tool_usage("--names is of CSV: no -o names such a file, nor does --format");
    return dashes > 1 ? tool_usage("only one of values, --compare, --accuracy and --labels comes "
                                   "from stdin")
                      : 0;
}

int judge_finish(tool *t)
{
    int status = t->compare != NULL ? finish_compare(t) : 0;
    if (status == 0 && t->accuracy != NULL)
        status = finish_accuracy(t);
    if (status == 0 && t->settings.json)
        report_print(t);
    return status;
}

void judge_release(tool *t)
{
    if (t->expected_stream != NULL && t->expected_stream != stdin)
        fclose(t->expected_stream);
    ort_tensors_free(t->expected);
    ort_tensors_free(t->truth);
    free(t->matrix);
    report_release(t);
}
