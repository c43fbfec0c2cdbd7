/* judge.c - looks at values: best classes with labels, comparison, accuracy, confusion, print. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/labels.h"
#include "common/screen.h"
#include "tensor_tool.h"

/* ---- top */

typedef struct scored {
    double score;
    int64_t index;
} scored;

/* Higher scores first; equal ones by index. */
static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int print_tensor_top(const tool *t, const ort_value *v, const string_list *labels)
{
    int rank = ort_value_rank(v);
    int64_t classes = rank > 0 ? ort_value_dims(v)[rank - 1] : 1;
    int64_t rows = classes > 0 ? ort_value_count(v) / classes : 0;
    scored *list = tool_alloc((size_t)(classes + 1) * sizeof *list);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < classes; c++)
            list[c] = (scored){ort_value_get_double(v, r * classes + c), c};
        qsort(list, (size_t)classes, sizeof *list, by_score);
        for (int64_t k = 0; k < t->top && k < classes; k++) {
            if (rows > 1)
                printf("%" PRId64 "\t", r);
            printf("%" PRId64 "\t%.6g", list[k].index, list[k].score);
            if ((size_t)list[k].index < labels->count)
                printf("\t%s", labels->items[list[k].index]);
            putchar('\n');
        }
    }
    free(list);
    return 0;
}

static void print_key(const ort_value *keys, int64_t index)
{
    size_t length;
    if (ort_value_dtype(keys) == ORT_DTYPE_STRING) {
        const char *text = ort_value_string(keys, index, &length);
        printf("%.*s", (int)length, text);
    } else {
        printf("%.0f", ort_value_get_double(keys, index));
    }
}

/* A sequence of maps from class to score, as ZipMap makes. */
static int print_map_top(const tool *t, const ort_value *v)
{
    for (size_t r = 0; r < (size_t)ort_value_count(v); r++) {
        const ort_value *map = ort_value_item(v, r);
        if (ort_value_get_kind(map) != ORT_VALUE_MAP)
            return bad_value(&(operation){.option = "--top"}, v, "scores");
        const ort_value *keys = ort_value_item(map, 0), *scores = ort_value_item(map, 1);
        int64_t n = ort_value_count(keys);
        scored *list = tool_alloc((size_t)(n + 1) * sizeof *list);
        for (int64_t c = 0; c < n; c++)
            list[c] = (scored){ort_value_get_double(scores, c), c};
        qsort(list, (size_t)n, sizeof *list, by_score);
        for (int64_t k = 0; k < t->top && k < n; k++) {
            if (ort_value_count(v) > 1)
                printf("%zu\t", r);
            print_key(keys, list[k].index);
            printf("\t%.6g\n", list[k].score);
        }
        free(list);
    }
    return 0;
}

int judge_top(tool *t, const char *name, const ort_value *value)
{
    string_list labels = {0};
    int status;
    (void)name;
    if (ort_value_get_kind(value) == ORT_VALUE_SEQUENCE)
        return print_map_top(t, value);
    if (ort_value_get_kind(value) != ORT_VALUE_TENSOR ||
        ort_value_dtype(value) == ORT_DTYPE_STRING)
        return bad_value(&(operation){.option = "--top"}, value, "scores");
    status = labels_load(t->labels, &labels);
    if (status == 0)
        status = print_tensor_top(t, value, &labels);
    string_list_release(&labels);
    return status;
}

/* ---- compare */

int judge_compare(tool *t, const ort_tensors *record)
{
    ort_error err = {0};
    ort_tensors *expected = NULL;
    ort_read_options read = {0};
    ort_compare_options options = {t->rtol, t->atol};
    int status = 0;
    if (ort_tensors_load(t->compare, &read, &expected, &err) != ORT_OK)
        return fail(&err);
    size_t n = ort_tensors_count(record), m = ort_tensors_count(expected);
    if (n != m) {
        status = tool_error(ORT_ERROR_DATA, "%s: holds %zu values, compared with %zu", t->compare,
                            m, n);
    }
    for (size_t i = 0; i < n && status == 0; i++) {
        const char *name = ort_tensors_name(record, i);
        size_t k = i;
        for (size_t j = 0; j < m; j++)
            if (name[0] != '\0' && strcmp(ort_tensors_name(expected, j), name) == 0)
                k = j;
        ort_difference d;
        if (ort_value_compare(ort_tensors_value(record, i), ort_tensors_value(expected, k),
                              &options, &d, &err) != ORT_OK) {
            status = fail(&err);
            break;
        }
        screen_verdict(stdout, d.equal);
        printf("%s: %s\n", name[0] != '\0' ? name : "value", d.text);
        if (!d.equal)
            t->gate = EXIT_GATE;
    }
    ort_tensors_free(expected);
    return status;
}

/* ---- accuracy and confusion */

static int64_t predicted(const ort_value *v, int64_t row, int64_t classes)
{
    int64_t best = 0;
    if (classes == 0)
        return (int64_t)ort_value_get_double(v, row);
    for (int64_t c = 1; c < classes; c++)
        if (ort_value_get_double(v, row * classes + c) >
            ort_value_get_double(v, row * classes + best))
            best = c;
    return best;
}

static void count_pair(tool *t, int64_t truth, int64_t guess)
{
    int64_t need = (truth > guess ? truth : guess) + 1;
    if (truth < 0 || guess < 0 || need > 4096)
        return;
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
}

int judge_accuracy(tool *t, const ort_value *value)
{
    ort_error err = {0};
    ort_read_options read = {0};
    operation op = {.option = "--accuracy"};
    if (t->truth == NULL && ort_tensors_load(t->accuracy, &read, &t->truth, &err) != ORT_OK)
        return fail(&err);
    const ort_value *truth = ort_tensors_value(t->truth, 0);
    if (ort_value_get_kind(value) != ORT_VALUE_TENSOR ||
        ort_value_dtype(value) == ORT_DTYPE_STRING || ort_value_dtype(truth) == ORT_DTYPE_STRING)
        return bad_value(&op, value, "numeric scores and labels");
    int rank = ort_value_rank(value);
    int64_t classes = rank >= 2 ? ort_value_dims(value)[rank - 1] : 0;
    int64_t rows = classes > 0 ? ort_value_count(value) / classes : ort_value_count(value);
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = (int64_t)t->judged;
        if (at >= ort_value_count(truth)) {
            return tool_error(ORT_ERROR_DATA, "%s: holds %" PRId64 " labels, there are more rows",
                              t->accuracy, ort_value_count(truth));
        }
        int64_t label = (int64_t)ort_value_get_double(truth, at);
        int64_t guess = predicted(value, r, classes);
        t->judged++;
        t->correct += label == guess;
        if (t->confusion)
            count_pair(t, label, guess);
    }
    return 0;
}

int judge_finish(tool *t)
{
    if (t->accuracy == NULL)
        return 0;
    double accuracy = t->judged > 0 ? t->correct / t->judged : 0;
    tool_reported();
    if (t->settings.json)
        printf("{\"schema\": \"ort-tensor/1\", \"accuracy\": %.6f, \"correct\": %.0f, "
               "\"count\": %.0f}\n",
               accuracy, t->correct, t->judged);
    else
        printf("accuracy %.4f (%.0f of %.0f)\n", accuracy, t->correct, t->judged);
    for (int64_t r = 0; t->confusion && !t->settings.json && r <= t->classes; r++) {
        printf(r == 0 ? "true\\said" : "%9" PRId64, r - 1);
        for (int64_t c = 0; c < t->classes; c++)
            printf("%7" PRId64, r == 0 ? c : t->matrix[(r - 1) * t->classes + c]);
        putchar('\n');
    }
    if (accuracy < t->min_accuracy) {
        tool_warn("accuracy %.4f is below %.4f", accuracy, t->min_accuracy);
        t->gate = EXIT_GATE;
    }
    ort_tensors_free(t->truth);
    return 0;
}

int print_record(tool *t, const ort_tensors *record)
{
    ort_error err = {0};
    for (size_t i = 0; i < ort_tensors_count(record); i++)
        if (ort_value_print(ort_tensors_value(record, i), ort_tensors_name(record, i),
                            (int)t->print_items, stdout, &err) != ORT_OK)
            return fail(&err);
    return 0;
}
