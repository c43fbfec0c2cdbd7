/* print.c - a value as a person wants to read it: type, shape, statistics, the first elements. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "io/format.h"
#include "io/out_file.h"
#include "tensor/text.h"

typedef struct statistics {
    double min, max, mean, deviation;
    int64_t finite, nan, infinite, zero;
} statistics;

/* Welford's running mean: one pass, no overflow, no cancellation. */
static statistics measure(const ort_tensor *t)
{
    statistics s = {.min = INFINITY, .max = -INFINITY};
    double square = 0;
    int64_t count = ort_tensor_count(t);
    for (int64_t i = 0; i < count; i++) {
        double v = ort_tensor_get_f64(t, i);
        if (!isfinite(v)) {
            s.nan += isnan(v) != 0;
            s.infinite += isinf(v) != 0;
            continue;
        }
        s.finite++;
        s.zero += v == 0;
        s.min = v < s.min ? v : s.min;
        s.max = v > s.max ? v : s.max;
        double delta = v - s.mean;
        s.mean += delta / (double)s.finite;
        square += delta * (v - s.mean);
    }
    s.deviation = s.finite ? sqrt(square / (double)s.finite) : 0;
    return s;
}

static void add_statistics(ort_strbuf *out, const ort_tensor *t)
{
    ort_dtype_class class_ = ort_dtype_get(t->dtype)->class_;
    if (class_ == ORT_CLASS_STRING || class_ == ORT_CLASS_COMPLEX || ort_tensor_count(t) == 0)
        return;
    statistics s = measure(t);
    if (s.finite > 0)
        ort_strbuf_addf(out, "  min %.6g  max %.6g  mean %.6g  std %.6g", s.min, s.max, s.mean,
                        s.deviation);
    if (s.zero > 0)
        ort_strbuf_addf(out, "  zeros %" PRId64, s.zero);
    if (s.nan > 0)
        ort_strbuf_addf(out, "  NaN %" PRId64, s.nan);
    if (s.infinite > 0)
        ort_strbuf_addf(out, "  infinite %" PRId64, s.infinite);
}

static void add_element(ort_strbuf *out, const ort_tensor *t, int64_t index)
{
    ort_dtype_class class_ = ort_dtype_get(t->dtype)->class_;
    if (class_ == ORT_CLASS_STRING) {
        const ort_string *s = (const ort_string *)t->data + index;
        ort_json json;
        ort_json_init(&json, out, 0);
        ort_json_string_n(&json, s->ptr ? s->ptr : "", s->length);
    } else if (class_ == ORT_CLASS_FLOAT) {
        ort_strbuf_addf(out, "%.6g", ort_tensor_get_f64(t, index));
    } else {
        ort_text_add_element(out, t, index);
    }
}

static void add_tensor(ort_strbuf *out, const ort_tensor *t, int max_items, const char *indent)
{
    char shape[160];
    int64_t count = ort_tensor_count(t), shown = count < max_items ? count : max_items;
    ort_strbuf_addf(out, "%s %s", ort_dtype_name(t->dtype),
                    ort_shape_format(&t->shape, shape, sizeof shape));
    add_statistics(out, t);
    ort_strbuf_add_char(out, '\n');
    if (shown <= 0)
        return;
    ort_strbuf_addf(out, "%s  ", indent);
    for (int64_t i = 0; i < shown; i++) {
        add_element(out, t, i);
        if (i + 1 < count)
            ort_strbuf_add_char(out, ' ');
    }
    if (shown < count)
        ort_strbuf_addf(out, "... (%" PRId64 " elements)", count);
    ort_strbuf_add_char(out, '\n');
}

static void add_value(ort_strbuf *out, const ort_value *value, int max_items, int depth)
{
    char indent[64];
    int width = depth * 2 < (int)sizeof indent - 1 ? depth * 2 : (int)sizeof indent - 1;
    memset(indent, ' ', (size_t)width);
    indent[width] = '\0';
    switch (ort_value_get_kind(value)) {
    case ORT_VALUE_NONE: ort_strbuf_add(out, "absent\n"); return;
    case ORT_VALUE_TENSOR: add_tensor(out, &value->tensor, max_items, indent); return;
    case ORT_VALUE_MAP:
        ort_strbuf_addf(out, "map of %" PRId64 "\n%s  keys: ", ort_value_count(value), indent);
        add_value(out, value->items[0], max_items, depth + 1);
        ort_strbuf_addf(out, "%s  values: ", indent);
        add_value(out, value->items[1], max_items, depth + 1);
        return;
    case ORT_VALUE_SEQUENCE: break;
    }
    ort_strbuf_addf(out, "sequence of %zu\n", value->count);
    for (size_t i = 0; i < value->count && (max_items < 0 || i < (size_t)max_items); i++) {
        ort_strbuf_addf(out, "%s  [%zu] ", indent, i);
        add_value(out, value->items[i], max_items, depth + 1);
    }
    if (max_items >= 0 && value->count > (size_t)max_items)
        ort_strbuf_addf(out, "%s  ... (%zu items)\n", indent, value->count);
}

ort_status ort_value_print(const ort_value *value, const char *name, int max_items, FILE *stream,
                           ort_error *err)
{
    if (!value || !stream)
        return ort_error_null(err, __func__);
    ort_value *copy = NULL;
    ORT_TRY(ort_value_check_host(value, err));
    if (value->kind == ORT_KIND_TENSOR && value->tensor.stride)
        ORT_TRY(ort_value_clone(value, &copy, err));
    ort_strbuf text = {0};
    if (name && name[0])
        ort_strbuf_addf(&text, "%s: ", name);
    add_value(&text, copy ? copy : value, max_items, 0);
    ort_status status = text.failed ? ort_error_memory(err, text.length) : ORT_OK;
    if (status == ORT_OK) {
        fwrite(ort_strbuf_text(&text), 1, text.length, stream);
        status = ort_out_file_check(stream, stream == stdout ? "standard output" : "report", err);
    }
    ort_strbuf_release(&text);
    ort_value_free(copy);
    return status;
}
