/* report.c - the JSON report of ort-tensor: what --print, --top, --compare and --accuracy say.
 *
 * One object when everything is done; a member of "records" per record that something was said of.
 */
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearness.h"
#include "tensor_tool.h"

static json_object *root(tool *t)
{
    if (t->report == NULL) {
        t->report = json_object_new_object();
        json_object_object_add(t->report, "schema", json_object_new_string("ort-tensor/1"));
        json_object_object_add(t->report, "records", json_object_new_array());
    }
    return t->report;
}

/* The list of the present record called `key`. */
static json_object *list_of(tool *t, const char *key)
{
    json_object *records, *record, *list = NULL;
    json_object_object_get_ex(root(t), "records", &records);
    size_t count = json_object_array_length(records);
    if (t->present == 0 || t->present != t->records + 1) {
        t->present = t->records + 1;
        record = json_object_new_object();
        json_object_object_add(record, "record", json_object_new_int64((int64_t)t->present));
        json_object_array_add(records, record);
        count++;
    }
    record = json_object_array_get_idx(records, count - 1);
    if (!json_object_object_get_ex(record, key, &list)) {
        list = json_object_new_array();
        json_object_object_add(record, key, list);
    }
    return list;
}

/* JSON has no NaN and no infinity. */
static json_object *number(double value)
{
    return isfinite(value) ? json_object_new_double(value) : NULL;
}

static json_object *element(const ort_value *v, int64_t index)
{
    size_t length;
    if (ort_value_dtype(v) == ORT_DTYPE_STRING) {
        const char *text = ort_value_string(v, index, &length);
        return json_object_new_string_len(text, (int)length);
    }
    if (ort_value_dtype(v) == ORT_DTYPE_INT64) /* no double holds them all */
        return json_object_new_int64(((int64_t *)ort_value_data((ort_value *)v))[index]);
    if (ort_value_dtype(v) == ORT_DTYPE_UINT64)
        return json_object_new_uint64(((uint64_t *)ort_value_data((ort_value *)v))[index]);
    double value = ort_value_get_double(v, index);
    if (value == floor(value) && fabs(value) < 0x1p53)
        return json_object_new_int64((int64_t)value);
    return number(value);
}

static json_object *shape_of(const ort_value *v)
{
    json_object *shape = json_object_new_array();
    for (int i = 0; i < ort_value_rank(v); i++)
        json_object_array_add(shape, json_object_new_int64(ort_value_dims(v)[i]));
    return shape;
}

/* ---- --print */

static void add_statistics(json_object *object, const ort_value *v)
{
    double min = INFINITY, max = -INFINITY, sum = 0;
    int64_t finite = 0, nans = 0, count = ort_value_count(v);
    for (int64_t i = 0; i < count; i++) {
        double value = ort_value_get_double(v, i);
        nans += isnan(value);
        min = value < min ? value : min;
        max = value > max ? value : max;
        sum += isfinite(value) ? value : 0;
        finite += isfinite(value);
    }
    json_object_object_add(object, "min", number(min));
    json_object_object_add(object, "max", number(max));
    json_object_object_add(object, "mean", finite > 0 ? number(sum / (double)finite) : NULL);
    json_object_object_add(object, "nan_count", json_object_new_int64(nans));
}

void report_value(tool *t, const char *name, const ort_value *v)
{
    static const char *const kinds[] = {"none", "tensor", "sequence", "map"};
    json_object *object = json_object_new_object(), *items;
    ort_value_kind kind = ort_value_get_kind(v);
    json_object_array_add(list_of(t, "values"), object);
    json_object_object_add(object, "name", json_object_new_string(name));
    json_object_object_add(object, "kind", json_object_new_string(kinds[kind]));
    if (kind != ORT_VALUE_TENSOR) {
        json_object_object_add(object, "count", json_object_new_int64(ort_value_count(v)));
        return;
    }
    json_object_object_add(object, "dtype",
                           json_object_new_string(ort_dtype_name(ort_value_dtype(v))));
    json_object_object_add(object, "shape", shape_of(v));
    if (ort_value_dtype(v) != ORT_DTYPE_STRING)
        add_statistics(object, v);
    items = json_object_new_array();
    for (int64_t i = 0; i < ort_value_count(v) && i < t->print_items; i++)
        json_object_array_add(items, element(v, i));
    json_object_object_add(object, "items", items);
}

/* ---- --top, --compare, --accuracy */

void report_class(tool *t, const char *name, int64_t row, json_object *class, double score,
                  const char *label)
{
    json_object *object = json_object_new_object();
    json_object_array_add(list_of(t, "top"), object);
    json_object_object_add(object, "name", json_object_new_string(name));
    json_object_object_add(object, "row", json_object_new_int64(row));
    json_object_object_add(object, "class", class);
    json_object_object_add(object, "score", number(score));
    if (label != NULL)
        json_object_object_add(object, "label", json_object_new_string(label));
}

void report_difference(tool *t, const char *name, const ort_difference *d, bool equal,
                       const ort_distance *distance, const part_sums *p)
{
    json_object *object = json_object_new_object();
    json_object_array_add(list_of(t, "compare"), object);
    json_object_object_add(object, "name", json_object_new_string(name));
    json_object_object_add(object, "equal", json_object_new_boolean(equal));
    json_object_object_add(object, "text", json_object_new_string(d->text));
    if (distance != NULL)
        nearness_json(object, distance);
    parts_json(object, p);
}

static json_object *gate_object(const char *name, bool passed)
{
    json_object *object = json_object_new_object();
    json_object_object_add(object, "gate", json_object_new_string(name));
    json_object_object_add(object, "passed", json_object_new_boolean(passed));
    return object;
}

void report_accuracy(tool *t, double accuracy, bool passed)
{
    json_object *report = root(t), *matrix = NULL;
    json_object_object_add(report, "accuracy", json_object_new_double(accuracy));
    json_object_object_add(report, "correct", json_object_new_int64((int64_t)t->correct));
    json_object_object_add(report, "count", json_object_new_int64((int64_t)t->judged));
    json_object_object_add(report, "without_class", json_object_new_int64((int64_t)t->classless));
    if (t->confusion)
        json_object_object_add(report, "confusion", matrix = json_object_new_array());
    for (int64_t r = 0; t->confusion && r < t->classes; r++) {
        json_object *row = json_object_new_array();
        for (int64_t c = 0; c < t->classes; c++)
            json_object_array_add(row, json_object_new_int64(t->matrix[r * t->classes + c]));
        json_object_array_add(matrix, row);
    }
    t->low_accuracy = !passed;
}

/* A gate of what must not be less; NaN passes none. */
static json_object *least_gate(const char *name, double measured, double allowed, const char *unit)
{
    char key[32];
    json_object *gate = gate_object(name, measured >= allowed);
    snprintf(key, sizeof key, "measured%s", unit);
    json_object_object_add(gate, key, number(measured));
    snprintf(key, sizeof key, "allowed%s", unit);
    json_object_object_add(gate, key, json_object_new_double(allowed));
    return gate;
}

static json_object *gates_of(const tool *t)
{
    json_object *gates = json_object_new_array(), *gate;
    if (t->compare != NULL) {
        gate = gate_object("compare", t->differing == 0);
        json_object_object_add(gate, "compared", json_object_new_int64((int64_t)t->compared));
        json_object_object_add(gate, "differing", json_object_new_int64((int64_t)t->differing));
        json_object_array_add(gates, gate);
    }
    if (t->min_sqnr >= 0)
        json_object_array_add(gates, least_gate("min-sqnr", t->least_sqnr, t->min_sqnr, "_db"));
    if (t->min_cosine >= 0)
        json_object_array_add(gates, least_gate("min-cosine", t->least_cosine, t->min_cosine, ""));
    if (t->min_accuracy > 0) {
        gate = gate_object("min-accuracy", !t->low_accuracy);
        json_object_object_add(gate, "allowed", json_object_new_double(t->min_accuracy));
        json_object_array_add(gates, gate);
    }
    return gates;
}

void report_print(tool *t)
{
    json_object_object_add(root(t), "gates", gates_of(t));
    tool_reported();
    printf("%s\n", json_object_to_json_string_ext(t->report, JSON_C_TO_STRING_PRETTY |
                                                                 JSON_C_TO_STRING_SPACED |
                                                                 JSON_C_TO_STRING_NOSLASHESCAPE));
}

void report_release(tool *t)
{
    json_object_put(t->report);
    t->report = NULL;
}
