/* judge.c - looks at values: best classes with labels, print. */
#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/screen.h"
#include "tensor_tool.h"

/* ---- top */

typedef struct scored {
    double score;
    int64_t index;
} scored;

/* Higher scores first, NaN last; equal ones by index. */
static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (isnan(x->score) != isnan(y->score))
        return isnan(x->score) ? 1 : -1;
    if (x->score != y->score && !isnan(x->score))
        return x->score < y->score ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The file that a row came from in front of its lines, else its number where there are several. */
static void print_row_start(const ort_tensors *record, int64_t rows, int64_t row)
{
    size_t names = ort_tensors_source_count(record);
    bool by_row = names > 1 && (int64_t)names == rows;
    if (names == 1 || by_row)
        screen_printf(stdout, "%s\t", ort_tensors_source(record, by_row ? (size_t)row : 0));
    if (rows > 1 && !by_row)
        printf("%" PRId64 "\t", row);
}

static int print_tensor_top(tool *t, const char *name, const ort_tensors *record,
                            const ort_value *v)
{
    const string_list *labels = &t->label_names;
    int rank = ort_value_rank(v);
    int64_t classes = rank > 0 ? ort_value_dims(v)[rank - 1] : 1;
    int64_t rows = classes > 0 ? ort_value_count(v) / classes : 0;
    scored *list = tool_alloc((size_t)(classes + 1) * sizeof *list);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < classes; c++)
            list[c] = (scored){ort_value_get_double(v, r * classes + c), c};
        qsort(list, (size_t)classes, sizeof *list, by_score);
        for (int64_t k = 0; t->settings.json && k < t->top && k < classes; k++) {
            size_t c = (size_t)list[k].index;
            report_class(t, name, r, json_object_new_int64(list[k].index), list[k].score,
                         c < labels->count ? labels->items[c] : NULL);
        }
        for (int64_t k = 0; !t->settings.json && k < t->top && k < classes; k++) {
            print_row_start(record, rows, r);
            printf("%" PRId64 "\t%.6g", list[k].index, list[k].score);
            if ((size_t)list[k].index < labels->count)
                screen_printf(stdout, "\t%s", labels->items[list[k].index]);
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
        screen_printf(stdout, "%.*s", (int)length, text);
    } else {
        printf("%.0f", ort_value_get_double(keys, index));
    }
}

static json_object *key_object(const ort_value *keys, int64_t index)
{
    size_t length;
    if (ort_value_dtype(keys) != ORT_DTYPE_STRING)
        return json_object_new_int64((int64_t)ort_value_get_double(keys, index));
    const char *text = ort_value_string(keys, index, &length);
    return json_object_new_string_len(text, (int)length);
}

/* A sequence of maps from class to score, as ZipMap makes. */
static int print_map_top(tool *t, const char *name, const ort_tensors *record,
                         const ort_value *v)
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
        for (int64_t k = 0; t->settings.json && k < t->top && k < n; k++)
            report_class(t, name, (int64_t)r, key_object(keys, list[k].index), list[k].score, NULL);
        for (int64_t k = 0; !t->settings.json && k < t->top && k < n; k++) {
            print_row_start(record, ort_value_count(v), (int64_t)r);
            print_key(keys, list[k].index);
            printf("\t%.6g\n", list[k].score);
        }
        free(list);
    }
    return 0;
}

int judge_top(tool *t, const ort_tensors *record, size_t index)
{
    const ort_value *value = ort_tensors_value(record, index);
    const char *name = ort_tensors_name(record, index);
    if (ort_value_get_kind(value) == ORT_VALUE_SEQUENCE)
        return print_map_top(t, name, record, value);
    if (ort_value_get_kind(value) != ORT_VALUE_TENSOR ||
        ort_value_dtype(value) == ORT_DTYPE_STRING)
        return bad_value(&(operation){.option = "--top"}, value, "scores");
    return print_tensor_top(t, name, record, value);
}

static int print_value(tool *t, const char *name, const ort_value *value)
{
    if (!t->settings.json)
        return screen_value(stdout, value, name, t->print_items);
    report_value(t, name, value);
    return 0;
}

int print_record(tool *t, const ort_tensors *record)
{
    const size_t columns = ort_tensors_column_count(record), count = ort_tensors_count(record);
    int status = 0;
    for (size_t i = 0; i < columns && status == 0; i++)
        status = print_value(t, ort_tensors_column_name(record, i), ort_tensors_column(record, i));
    for (size_t i = 0; i < count && status == 0; i++)
        status = print_value(t, ort_tensors_name(record, i), ort_tensors_value(record, i));
    return status;
}
