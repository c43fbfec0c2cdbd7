/* labels.c - right answers beside what both models say: --labels. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/spool.h"
#include "evaluation.h"

enum { NO_CLASS = -1 };

/* For messages. */
static const char *label_of(const char *path)
{
    return path != NULL && !strcmp(path, "-") ? "standard input" : path;
}

/* Digits and white space alone, whatever the file is called: a table of one column. */
static bool is_list_of_numbers(const char *path)
{
    char text[256];
    FILE *file = fopen(path, "rb");
    const size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
    return length > 0 && strspn(text, "0123456789 \t\r\n") == length;
}

int labels_spool(const char *path)
{
    const char *copy;
    return path != NULL && spool_is_needed(path) ? spool_file(path, &copy) : 0;
}

int labels_read(const char *path, ort_tensors **all)
{
    ort_error err = {0};
    ort_read_options read = ORT_READ_OPTIONS_INIT;
    const char *copy = path;
    if (path == NULL)
        return 0;
    if (spool_is_needed(path)) {
        int status = spool_file(path, &copy);
        if (status != 0)
            return status;
        read.label = path = label_of(path);
    }
    if (ort_format_of_path(path) == ORT_FORMAT_AUTO && is_list_of_numbers(copy))
        read.format = ORT_FORMAT_CSV;
    if (ort_tensors_load(copy, &read, all, &err) != ORT_OK)
        return tool_fail(&err);
    const ort_value *labels = ort_tensors_value(*all, 0);
    if (labels == NULL || ort_value_get_kind(labels) != ORT_VALUE_TENSOR ||
        ort_value_dtype(labels) == ORT_DTYPE_STRING || ort_value_count(labels) == 0)
        return tool_error(ORT_ERROR_DATA,
                          "%s: holds no labels (numbers of classes, in text one a line)", path);
    for (int64_t i = 0; i < ort_value_count(labels); i++) {
        double label = ort_value_get_double(labels, i);
        if (!(label >= 0 && label == floor(label)))
            return tool_error(ORT_ERROR_DATA, "%s: label %" PRId64 " is %g, which is no class",
                              path, i, label);
    }
    return 0;
}

int labels_open(evaluation *e)
{
    return labels_read(e->q->options.labels, &e->labels);
}

int64_t labels_said(const ort_value *v, int64_t row, int64_t classes)
{
    int64_t best = 0;
    if (classes == 1)
        return (int64_t)ort_value_get_double(v, row);
    for (int64_t c = 0; c < classes; c++) {
        double score = ort_value_get_double(v, row * classes + c);
        if (isnan(score))
            return NO_CLASS;
        if (score > ort_value_get_double(v, row * classes + best))
            best = c;
    }
    return best;
}

int64_t labels_classes(const ort_value *v)
{
    if (v == NULL || ort_value_get_kind(v) != ORT_VALUE_TENSOR)
        return 0;
    int rank = ort_value_rank(v);
    ort_dtype dtype = ort_value_dtype(v);
    if (dtype_is_float(dtype) && rank > 0 && ort_value_dims(v)[rank - 1] > 1)
        return ort_value_dims(v)[rank - 1];
    return dtype == ORT_DTYPE_INT64 || dtype == ORT_DTYPE_INT32 ? 1 : 0;
}

static ort_status refuse(ort_error *err, const char *what, const char *path)
{
    err->status = ORT_ERROR_DATA;
    err->count = 1;
    snprintf(err->message, sizeof err->message, what, path);
    return err->status;
}

/* The first output that tells classes is the one that is judged. */
ort_status labels_judge(evaluation *e, ort_error *err)
{
    const ort_value *labels = e->labels ? ort_tensors_value(e->labels, 0) : NULL;
    const char *path = label_of(e->q->options.labels);
    size_t k = 0;
    while (k < e->count && labels_classes(e->sides[FLOAT_SIDE].out[k]) == 0)
        k++;
    if (labels == NULL)
        return ORT_OK;
    if (k == e->count)
        return refuse(err, "--labels %s: no output tells classes", path);
    const ort_value *out[] = {e->sides[FLOAT_SIDE].out[k],
                              e->sides[INTEGER_SIDE].out[e->measured[k].place]};
    int64_t classes = labels_classes(out[0]), rows = ort_value_count(out[0]) / classes;
    if (labels_classes(out[1]) != classes || ort_value_count(out[1]) != ort_value_count(out[0]))
        return refuse(err, "--labels %s: the two models give other shapes", path);
    for (int64_t r = 0; r < rows; r++, e->labelled++) {
        if (e->labelled >= ort_value_count(labels))
            return refuse(err, "%s: there are more rows than labels", path);
        double label = ort_value_get_double(labels, e->labelled);
        for (int s = 0; s < SIDES; s++)
            e->sides[s].correct += (double)labels_said(out[s], r, classes) == label;
    }
    return ORT_OK;
}

int labels_finish(const evaluation *e)
{
    int64_t count = e->labels ? ort_value_count(ort_tensors_value(e->labels, 0)) : 0;
    if (e->labelled == count)
        return 0;
    return tool_error(ORT_ERROR_DATA, "%s: holds %" PRId64 " labels, there are %" PRId64 " rows",
                      label_of(e->q->options.labels), count, e->labelled);
}
