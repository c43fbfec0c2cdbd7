/* tensor_json_write.c - values and files of them as JSON (the forms: tensor_json.c).
 *
 * Files are written in the explicit forms, one for each kind of value, from which every element
 * type comes back exactly; or all in the plain ones (ort_write_options.plain), which say no types:
 * bare arrays, lists and objects. Names that would make a file look like one value stand under
 * "tensors". */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/tensor_json.h"
#include "tensor/text.h"

enum { MOST_EMPTY = 1 << 20 };

static void add_complex(ort_strbuf *out, const ort_tensor *t, int64_t index)
{
    ort_tensor parts = {.dtype = t->dtype == ORT_DTYPE_COMPLEX64 ? ORT_DTYPE_FLOAT
                                                                 : ORT_DTYPE_DOUBLE,
                        .shape = {1, {2 * ort_tensor_count(t)}}, .data = t->data};
    ort_json json;
    ort_json_init(&json, out, 0);
    ort_json_begin_object(&json);
    ort_json_key(&json, "re");
    ort_json_double(&json, ort_tensor_get_f64(&parts, 2 * index));
    ort_json_key(&json, "im");
    ort_json_double(&json, ort_tensor_get_f64(&parts, 2 * index + 1));
    ort_json_end_object(&json);
}

static void add_leaf(ort_strbuf *out, const ort_tensor *t, int64_t index)
{
    ort_dtype_class class_ = ort_dtype_get(t->dtype)->class_;
    ort_json json;
    ort_json_init(&json, out, 0);
    if (class_ == ORT_CLASS_STRING) {
        const ort_string *s = (const ort_string *)t->data + index;
        ort_json_string_n(&json, s->ptr ? s->ptr : "", s->length);
    } else if (class_ == ORT_CLASS_BOOL) {
        ort_json_bool(&json, ort_tensor_get_i64(t, index) != 0);
    } else if (class_ == ORT_CLASS_COMPLEX) {
        add_complex(out, t, index);
    } else if (class_ == ORT_CLASS_FLOAT) {
        double v = ort_tensor_get_f64(t, index);
        if (t->dtype == ORT_DTYPE_DOUBLE || !isfinite(v))
            ort_json_double(&json, v);
        else
            ort_strbuf_add_float(out, (float)v);
    } else {
        ort_text_add_element(out, t, index);
    }
}

static void add_nested(ort_strbuf *out, const ort_tensor *t, int axis, int64_t *index)
{
    if (axis == t->shape.rank) {
        add_leaf(out, t, (*index)++);
        return;
    }
    ort_strbuf_add_char(out, '[');
    for (int64_t i = 0; i < t->shape.dim[axis] && !out->failed; i++) {
        if (i)
            ort_strbuf_add(out, ", ");
        add_nested(out, t, axis + 1, index);
    }
    ort_strbuf_add_char(out, ']');
}

static void add_plain_tensor(ort_json *json, const ort_tensor *t)
{
    ort_strbuf data = {0};
    int64_t index = 0;
    add_nested(&data, t, 0, &index);
    assert(data.failed || index == ort_tensor_count(t));
    ort_json_raw(json, ort_strbuf_text(&data), data.length);
    json->out->failed |= data.failed;
    ort_strbuf_release(&data);
}

void ort_tensor_json_add_type(ort_json *json, const char *dtype, const ort_shape *shape)
{
    ort_json_key(json, "dtype");
    ort_json_string(json, dtype);
    ort_json_key(json, "shape");
    ort_json_begin_array(json);
    for (int i = 0; i < shape->rank; i++)
        ort_json_int(json, shape->dim[i]);
    ort_json_end_array(json);
}

static void add_tensor(ort_json *json, const ort_tensor *t)
{
    ort_json_begin_object(json);
    ort_tensor_json_add_type(json, ort_dtype_name(t->dtype), &t->shape);
    ort_json_key(json, "data");
    add_plain_tensor(json, t);
    ort_json_end_object(json);
}

static void add_map(ort_json *json, const ort_value *value)
{
    ort_json_begin_object(json);
    ort_json_key(json, "keys");
    ort_tensor_json_add(json, value->items[0]);
    ort_json_key(json, "values");
    ort_tensor_json_add(json, value->items[1]);
    ort_json_end_object(json);
}

static void add_plain_map(ort_json *json, const ort_value *value)
{
    const ort_tensor *keys = &value->items[0]->tensor, *values = &value->items[1]->tensor;
    ort_strbuf text = {0};
    ort_json_begin_object(json);
    int64_t count = ort_tensor_count(keys);
    for (int64_t i = 0; i < count; i++) {
        ort_strbuf_clear(&text);
        ort_text_add_element(&text, keys, i);
        ort_json_key(json, ort_strbuf_text(&text));
        ort_strbuf_clear(&text);
        add_leaf(&text, values, i);
        ort_json_raw(json, ort_strbuf_text(&text), text.length);
    }
    ort_json_end_object(json);
    json->out->failed |= text.failed;
    ort_strbuf_release(&text);
}

static void add_value(ort_json *json, const ort_value *value, bool plain);

static void add_sequence(ort_json *json, const ort_value *value, bool plain)
{
    if (!plain)
        ort_json_begin_object(json);
    if (!plain && value->item_dtype != ORT_DTYPE_UNDEFINED) {
        ort_json_key(json, "dtype");
        ort_json_string(json, ort_dtype_name(value->item_dtype));
    }
    if (!plain)
        ort_json_key(json, "sequence");
    ort_json_begin_array(json);
    for (size_t i = 0; i < value->count; i++)
        add_value(json, value->items[i], plain);
    ort_json_end_array(json);
    if (!plain)
        ort_json_end_object(json);
}

static void add_value(ort_json *json, const ort_value *value, bool plain)
{
    switch (ort_value_get_kind(value)) {
    case ORT_VALUE_NONE: ort_json_null(json); break;
    case ORT_VALUE_TENSOR: (plain ? add_plain_tensor : add_tensor)(json, &value->tensor); break;
    case ORT_VALUE_MAP: (plain ? add_plain_map : add_map)(json, value); break;
    case ORT_VALUE_SEQUENCE: add_sequence(json, value, plain); break;
    }
}

void ort_tensor_json_add(ort_json *json, const ort_value *value)
{
    add_value(json, value, false);
}

/* Keys by which the reader knows a value. */
static bool is_reserved(const char *name)
{
    static const char *const words[] = {"data", "sequence", "map", "keys", "values", "tensors"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(name, words[i]))
            return true;
    return false;
}

static void add_named(ort_json *json, const ort_tensors *tensors, bool plain)
{
    bool wrap = tensors->list.count == 0;
    for (size_t i = 0; i < tensors->list.count; i++)
        wrap |= is_reserved(tensors->list.data[i].name);
    for (size_t i = 0; i < tensors->columns.count; i++)
        wrap |= is_reserved(tensors->columns.data[i].name);
    ort_json_begin_object(json);
    if (wrap) {
        ort_json_key(json, "tensors");
        ort_json_begin_object(json);
    }
    for (size_t i = 0; i < tensors->columns.count; i++) {
        ort_json_key(json, tensors->columns.data[i].name);
        add_value(json, tensors->columns.data[i].value, plain);
    }
    for (size_t i = 0; i < tensors->list.count; i++) {
        char number[32];
        ort_json_key(json, ort_tensors_full_name(tensors, i, number));
        add_value(json, tensors->list.data[i].value, plain);
    }
    if (wrap)
        ort_json_end_object(json);
    ort_json_end_object(json);
}

/* A shape of no elements may have any number of rows, each of which is a pair of brackets. */
static ort_status check_rows(const ort_tensor *t, ort_error *err)
{
    int64_t rows = 1;
    for (int i = 0; i < t->shape.rank && t->shape.dim[i] != 0; i++)
        rows *= t->shape.dim[i];
    if (ort_tensor_count(t) != 0 || rows <= MOST_EMPTY)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_DATA, "%lld rows without an element are too many for JSON; "
                         ".npy, .npz and .pb hold their shape", (long long)rows);
}

/* `depth` values around this one, in `levels` arrays and objects. */
static ort_status check(const ort_value *value, int depth, int levels, ort_error *err)
{
    bool is_tensor = ort_value_get_kind(value) == ORT_VALUE_TENSOR;
    levels += is_tensor ? value->tensor.shape.rank + 1 : 2;
    if (depth > ORT_JSON_DEEPEST_VALUE || levels > ORT_JSON_DEEPEST - 2) /* names around it all */
        return ort_error_set(err, ORT_ERROR_DATA, "values nested %d deep are too deep for JSON, of "
                             "which %d levels are read; .pb holds them", depth + 1,
                             ORT_JSON_DEEPEST);
    if (!is_tensor) {
        for (size_t i = 0; value && i < value->count; i++)
            ORT_TRY(check(value->items[i], depth + 1, levels, err));
        return ORT_OK;
    }
    ORT_TRY(check_rows(&value->tensor, err));
    const ort_string *text = value->tensor.data;
    int64_t count = value->tensor.dtype == ORT_DTYPE_STRING ? ort_tensor_count(&value->tensor) : 0;
    for (int64_t i = 0; i < count; i++)
        if (!ort_json_is_text(text[i].ptr ? text[i].ptr : "", text[i].length))
            return ort_error_set(err, ORT_ERROR_DATA, "string %lld is not UTF-8, which JSON needs; "
                                 ".pb holds any bytes", (long long)i);
    return ORT_OK;
}

ort_status ort_tensor_json_check(const ort_value *value, ort_error *err)
{
    return check(value, 0, 0, err);
}

ort_status ort_tensor_json_write(const ort_tensors *tensors, FILE *stream,
                                 const ort_write_options *options, ort_error *err)
{
    bool plain = options && options->plain;
    for (size_t i = 0; i < tensors->list.count; i++)
        ORT_TRY(ort_tensor_json_check(tensors->list.data[i].value, err));
    ort_strbuf text = {0};
    ort_json json;
    ort_json_init(&json, &text, 0);
    if (tensors->list.count == 1 && !tensors->list.data[0].name[0] && !tensors->columns.count)
        add_value(&json, tensors->list.data[0].value, plain);
    else
        add_named(&json, tensors, plain);
    ort_strbuf_add_char(&text, '\n');
    ort_status status = text.failed ? ort_error_memory(err, text.length) : ORT_OK;
    if (status == ORT_OK)
        fwrite(text.data, 1, text.length, stream);
    ort_strbuf_release(&text);
    return status;
}
