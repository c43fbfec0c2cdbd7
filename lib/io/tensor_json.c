/* tensor_json.c - tensors, sequences and maps as JSON.
 *
 *     tensor     {"dtype": "int64", "shape": [2, 2], "data": [[1, 2], [3, 4]]}
 *                or plain nested arrays (numbers are float, or the type asked for)
 *     sequence   {"sequence": [value, ...]}
 *     map        {"keys": tensor, "values": tensor}, or {"map": {"a": 1, "b": 2}} to write by hand;
 *                keys that are all integers are int64
 *     list       [{"a": 1, "b": 2}, ...] of such maps, a sequence
 *     absent     null
 *     file       {"name": value, ...}, {"tensors": {"name": value, ...}}, or one value alone
 *
 * Numbers that JSON lacks are the strings "nan", "inf" and "-inf"; "data" may be nested or flat. */
#include <assert.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/format.h"
#include "io/purpose.h"
#include "io/tensor_json.h"
#include "tensor/text.h"

typedef struct json_object json_object_node;

static ort_status read_value(json_object_node *node, ort_dtype dtype, int depth, ort_value **value,
                             ort_error *err);

static bool is_array(json_object_node *node)
{
    return json_object_is_type(node, json_type_array);
}

static json_object_node *get(json_object_node *node, const char *key)
{
    json_object_node *found = NULL;
    if (json_object_is_type(node, json_type_object))
        json_object_object_get_ex(node, key, &found);
    return found;
}

/* Shape of nested arrays by their first items; raggedness shows up while filling. */
static ort_status find_shape(json_object_node *node, ort_shape *shape, ort_error *err)
{
    shape->rank = 0;
    while (is_array(node)) {
        if (shape->rank == ORT_MAX_RANK)
            return ort_error_set(err, ORT_ERROR_DATA, "arrays are nested more than %d deep",
                                 ORT_MAX_RANK);
        size_t length = json_object_array_length(node);
        shape->dim[shape->rank++] = (int64_t)length;
        if (length == 0)
            break;
        node = json_object_array_get_idx(node, 0);
    }
    return ORT_OK;
}

/* What the leaves are: 's' strings only, 'b' booleans only, 'n' numbers (among others), 0 none. */
static char leaf_kind(json_object_node *node, int depth)
{
    if (!is_array(node))
        return json_object_is_type(node, json_type_string)    ? 's'
               : json_object_is_type(node, json_type_boolean) ? 'b'
                                                              : 'n';
    char kind = 0;
    size_t length = depth < ORT_JSON_DEEPEST ? json_object_array_length(node) : 0;
    for (size_t i = 0; i < length; i++) {
        char one = leaf_kind(json_object_array_get_idx(node, i), depth + 1);
        if (kind && one && one != kind)
            return 'n';
        kind = one ? one : kind;
    }
    return kind;
}

/* Leaves at any depth: a shape may claim more than there are, which is no lack of memory. */
static int64_t count_leaves(json_object_node *node, int depth)
{
    int64_t count = 0;
    if (!is_array(node))
        return 1;
    size_t length = depth < ORT_JSON_DEEPEST ? json_object_array_length(node) : 0;
    for (size_t i = 0; i < length; i++)
        count += count_leaves(json_object_array_get_idx(node, i), depth + 1);
    return count;
}

typedef struct filler {
    ort_value *value;
    int64_t next, count;
    const ort_shape *shape; /* nested arrays must have it; NULL: any nesting, flat order */
} filler;

static ort_status bad_leaf(const filler *f, json_object_node *node, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_DATA, "element %lld, %.60s, is no %s", (long long)f->next,
                         json_object_to_json_string_ext(node, JSON_C_TO_STRING_NOSLASHESCAPE),
                         ort_dtype_name(f->value->tensor.dtype));
}

static ort_status fill_complex(filler *f, json_object_node *node, ort_error *err)
{
    ort_tensor *t = &f->value->tensor;
    json_object_node *part[2] = {get(node, "re"), get(node, "im")};
    if (!part[0] || !part[1])
        return bad_leaf(f, node, err);
    ort_tensor parts = {.dtype = t->dtype == ORT_DTYPE_COMPLEX64 ? ORT_DTYPE_FLOAT
                                                                 : ORT_DTYPE_DOUBLE,
                        .shape = {1, {2 * f->count}}, .data = t->data};
    for (int i = 0; i < 2; i++) {
        const char *text = json_object_get_string(part[i]);
        if (!text || !ort_text_parse_element(&parts, 2 * f->next + i, text, strlen(text), NULL))
            return bad_leaf(f, node, err);
    }
    return ORT_OK;
}

static ort_status fill_integer(filler *f, json_object_node *node, ort_error *err)
{
    ort_tensor *t = &f->value->tensor;
    bool held = false;
    if (json_object_is_type(node, json_type_double)) {
        ort_tensor_set_f64(t, f->next, json_object_get_double(node));
        held = ort_tensor_get_f64(t, f->next) == json_object_get_double(node);
    } else if (json_object_is_type(node, json_type_int) ||
               json_object_is_type(node, json_type_string)) { /* 64 bits stay exact as text */
        const char *text = json_object_get_string(node);
        held = ort_text_parse_integer(t, f->next, text, strlen(text));
    }
    return held ? ORT_OK : bad_leaf(f, node, err);
}

/* What the parser makes of integers beyond 64 bits: the last ones that it has. */
static bool is_cut_off(json_object_node *node)
{
    return json_object_is_type(node, json_type_int) &&
           (json_object_get_uint64(node) == UINT64_MAX || json_object_get_int64(node) == INT64_MIN);
}

static ort_status fill_leaf(filler *f, json_object_node *node, ort_error *err)
{
    ort_tensor *t = &f->value->tensor;
    ort_dtype_class class_ = ort_dtype_get(t->dtype)->class_;
    if (class_ == ORT_CLASS_STRING) {
        if (!json_object_is_type(node, json_type_string))
            return bad_leaf(f, node, err);
        return ort_value_set_string_(f->value, f->next, json_object_get_string(node),
                                     (size_t)json_object_get_string_len(node), err);
    }
    if (class_ == ORT_CLASS_COMPLEX)
        return fill_complex(f, node, err);
    if (json_object_is_type(node, json_type_boolean)) {
        ort_tensor_set_i64(t, f->next, json_object_get_boolean(node));
        return ORT_OK;
    }
    if (class_ == ORT_CLASS_INT || class_ == ORT_CLASS_UINT)
        return fill_integer(f, node, err);
    if (json_object_is_type(node, json_type_double)) {
        double number = json_object_get_double(node);
        if (class_ != ORT_CLASS_FLOAT && number != nearbyint(number))
            return bad_leaf(f, node, err);
        ort_tensor_set_f64(t, f->next, number);
        return ORT_OK;
    }
    if (class_ == ORT_CLASS_FLOAT && is_cut_off(node))
        return ort_error_set(err, ORT_ERROR_DATA, "element %lld is an integer beyond 64 bits; "
                             "write it with an exponent, as 1e20", (long long)f->next);
    const char *text = NULL; /* "nan" and "inf" are numbers */
    if (json_object_is_type(node, json_type_int) || json_object_is_type(node, json_type_string))
        text = json_object_get_string(node);
    return text && ort_text_parse_element(t, f->next, text, strlen(text), NULL)
               ? ORT_OK
               : bad_leaf(f, node, err);
}

static ort_status fill(filler *f, json_object_node *node, int axis, ort_error *err)
{
    if (!is_array(node)) {
        if (f->shape && axis != f->shape->rank)
            return ort_error_set(err, ORT_ERROR_DATA, "the arrays are ragged: a number stands "
                                 "where an array of %lld is expected (element %lld)",
                                 (long long)f->shape->dim[axis], (long long)f->next);
        assert(f->next < f->count); /* the leaves were counted, or nest as the shape has it */
        ORT_TRY(fill_leaf(f, node, err));
        f->next++;
        return ORT_OK;
    }
    size_t length = json_object_array_length(node);
    if (axis >= ORT_JSON_DEEPEST || (f->shape && (axis >= f->shape->rank ||
                                         (int64_t)length != f->shape->dim[axis])))
        return ort_error_set(err, ORT_ERROR_DATA, "the arrays are ragged: one has %zu items, the "
                             "first one has %lld (element %lld)", length,
                             f->shape && axis < f->shape->rank ? (long long)f->shape->dim[axis] : 0,
                             (long long)f->next);
    for (size_t i = 0; i < length; i++)
        ORT_TRY(fill(f, json_object_array_get_idx(node, i), axis + 1, err));
    return ORT_OK;
}

/* A tensor of `data`; shape NULL: as nested. */
static ort_status read_array(json_object_node *data, ort_dtype dtype, const ort_shape *given,
                             ort_value **value, ort_error *err)
{
    ort_shape shape;
    ORT_TRY(find_shape(data, &shape, err));
    if (dtype == ORT_DTYPE_UNDEFINED) {
        char kind = leaf_kind(data, 0);
        dtype = kind == 's' ? ORT_DTYPE_STRING : kind == 'b' ? ORT_DTYPE_BOOL : ORT_DTYPE_FLOAT;
    }
    ORT_TRY(ort_shape_check(given ? given : &shape, dtype, err));
    int64_t count = ort_shape_count(given ? given : &shape);
    if (given && count_leaves(data, 0) != count)
        return ort_error_set(err, ORT_ERROR_DATA, "there are %lld elements, the shape has %lld",
                             (long long)count_leaves(data, 0), (long long)count);
    ort_value *made = NULL;
    ORT_TRY(ort_value_new_tensor_(dtype, given ? given : &shape, &made, err));
    filler f = {.value = made, .count = count, .shape = given ? NULL : &shape};
    ort_status status = fill(&f, data, 0, err);
    assert(status != ORT_OK || f.next == count);
    return ort_value_hand(status, made, value);
}

static ort_status read_tensor(json_object_node *node, json_object_node *data, ort_dtype dtype,
                              ort_value **value, ort_error *err)
{
    json_object_node *type = get(node, "dtype"), *dims = get(node, "shape");
    ort_shape shape = {0};
    if (type) {
        dtype = ort_dtype_find(json_object_get_string(type));
        if (dtype == ORT_DTYPE_UNDEFINED)
            return ort_error_set(err, ORT_ERROR_DATA, "dtype %.40s is unknown",
                                 json_object_to_json_string_ext(
                                     type, JSON_C_TO_STRING_NOSLASHESCAPE));
    }
    if (!dims)
        return read_array(data, dtype, NULL, value, err);
    size_t rank = is_array(dims) ? json_object_array_length(dims) : SIZE_MAX;
    if (rank > ORT_MAX_RANK)
        return ort_error_set(err, ORT_ERROR_DATA, "shape must be an array of at most %d sizes",
                             ORT_MAX_RANK);
    shape.rank = (int)rank;
    for (size_t i = 0; i < rank; i++)
        shape.dim[i] = json_object_get_int64(json_object_array_get_idx(dims, i));
    return read_array(data, dtype, &shape, value, err);
}

static ort_status read_sequence(json_object_node *items, ort_dtype dtype, int depth,
                                ort_value **value, ort_error *err)
{
    if (!is_array(items))
        return ort_error_set(err, ORT_ERROR_DATA, "\"sequence\" must be an array");
    ort_value *sequence = NULL;
    ORT_TRY(ort_value_new_sequence_(&sequence, err));
    sequence->item_dtype = dtype;
    size_t length = json_object_array_length(items);
    ort_status status = ORT_OK;
    for (size_t i = 0; i < length && status == ORT_OK; i++) {
        ort_value *item = NULL;
        status = read_value(json_object_array_get_idx(items, i), dtype, depth + 1, &item, err);
        if (status == ORT_OK)
            status = ort_value_append_take(sequence, item, err);
        else
            ort_error_wrap(err, status, "item %zu", i);
    }
    return ort_value_hand(status, sequence, value);
}

static ort_status read_map(json_object_node *keys_node, json_object_node *values_node,
                           ort_dtype dtype, int depth, ort_value **value, ort_error *err)
{
    ort_value *keys = NULL, *values = NULL;
    /* Plain integer keys mean int64: float is no key type. */
    ort_dtype key_dtype = is_array(keys_node) && leaf_kind(keys_node, 0) == 'n'
                              ? ORT_DTYPE_INT64 : ORT_DTYPE_UNDEFINED;
    ORT_TRY(read_value(keys_node, key_dtype, depth + 1, &keys, err));
    ort_status status = read_value(values_node, dtype, depth + 1, &values, err);
    if (status != ORT_OK) {
        ort_value_free(keys);
        return status;
    }
    return ort_value_new_map_take(keys, values, value, err);
}

/* Integers as they are written, so that nothing is lost by reading them as int64. */
static bool has_integer_keys(json_object_node *node)
{
    char text[24];
    json_object_object_foreach(node, key, item) {
        (void)item;
        snprintf(text, sizeof text, "%lld", strtoll(key, NULL, 10));
        if (strcmp(text, key))
            return false;
    }
    return json_object_object_length(node) > 0;
}

static ort_status set_key(ort_value *keys, int64_t index, const char *key, ort_error *err)
{
    if (keys->tensor.dtype == ORT_DTYPE_STRING)
        return ort_value_set_string_(keys, index, key, strlen(key), err);
    ort_tensor_set_i64(&keys->tensor, index, strtoll(key, NULL, 10));
    return ORT_OK;
}

/* {"a": 1, "b": 2} */
static ort_status read_plain_map(json_object_node *node, ort_dtype dtype, ort_value **value,
                                 ort_error *err)
{
    if (!json_object_is_type(node, json_type_object))
        return ort_error_set(err, ORT_ERROR_DATA, "\"map\" must be an object");
    int64_t count = json_object_object_length(node), index = 0;
    ort_value *keys = NULL, *values = NULL;
    json_object_node *list = json_object_new_array();
    if (!list)
        return ort_error_memory(err, 64);
    ort_status status = ort_value_new_tensor(has_integer_keys(node) ? ORT_DTYPE_INT64
                                                                    : ORT_DTYPE_STRING,
                                             1, &count, &keys, err);
    json_object_object_foreach(node, key, item) {
        if (status == ORT_OK)
            status = set_key(keys, index++, key, err);
        if (status == ORT_OK && json_object_array_add(list, json_object_get(item)) != 0)
            status = ort_error_memory(err, 64);
    }
    if (status == ORT_OK)
        status = read_array(list, dtype, NULL, &values, err);
    json_object_put(list);
    if (status == ORT_OK)
        return ort_value_new_map_take(keys, values, value, err);
    ort_value_free(keys);
    return status;
}

/* An object whose members are all plain numbers, strings or booleans. */
static bool is_plain_map(json_object_node *node)
{
    if (!json_object_is_type(node, json_type_object) || json_object_object_length(node) == 0)
        return false;
    json_object_object_foreach(node, key, item) {
        (void)key;
        if (!item || is_array(item) || json_object_is_type(item, json_type_object))
            return false;
    }
    return true;
}

/* An array of objects: their complex numbers apart, these are values. */
static bool is_list(json_object_node *node, ort_dtype dtype)
{
    return is_array(node) && json_object_array_length(node) > 0 &&
           ort_dtype_get(dtype)->class_ != ORT_CLASS_COMPLEX &&
           json_object_is_type(json_object_array_get_idx(node, 0), json_type_object);
}

static ort_status read_value(json_object_node *node, ort_dtype dtype, int depth, ort_value **value,
                             ort_error *err)
{
    *value = NULL;
    if (depth > ORT_JSON_DEEPEST_VALUE)
        return ort_error_set(err, ORT_ERROR_DATA, "values are nested more than %d deep",
                             ORT_JSON_DEEPEST_VALUE);
    if (!node)
        return ort_value_new_none(value, err);
    if (is_list(node, dtype))
        return read_sequence(node, dtype, depth, value, err);
    if (!json_object_is_type(node, json_type_object))
        return read_array(node, dtype, NULL, value, err);
    json_object_node *found = get(node, "data");
    if (found)
        return read_tensor(node, found, dtype, value, err);
    json_object_node *type = get(node, "dtype");
    if (type)
        dtype = ort_dtype_find(json_object_get_string(type));
    if ((found = get(node, "sequence")))
        return read_sequence(found, dtype, depth, value, err);
    if (get(node, "keys") && get(node, "values"))
        return read_map(get(node, "keys"), get(node, "values"), dtype, depth, value, err);
    if ((found = get(node, "map")))
        return read_plain_map(found, dtype, value, err);
    if (is_plain_map(node))
        return read_plain_map(node, dtype, value, err);
    return ort_error_set(err, ORT_ERROR_DATA, "an object must have \"data\", \"sequence\", \"map\""
                         ", or \"keys\" and \"values\"");
}

static bool is_value(json_object_node *node)
{
    return !json_object_is_type(node, json_type_object) || get(node, "data") ||
           get(node, "sequence") || get(node, "map") ||
           (get(node, "keys") && get(node, "values")) ||
           (is_plain_map(node) && has_integer_keys(node)); /* no names of inputs */
}

/* Parsed text, nothing behind it. */
static ort_status parse(const char *text, size_t length, json_object_node **root, ort_error *err)
{
    size_t start = length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
    *root = NULL;
    if (length - start > INT_MAX)
        return ort_error_set(err, ORT_ERROR_DATA, "%zu bytes of JSON are too many; .npz has no "
                             "limit", length);
    struct json_tokener *tokener = json_tokener_new_ex(ORT_JSON_DEEPEST);
    if (!tokener)
        return ort_error_memory(err, 1024);
    *root = json_tokener_parse_ex(tokener, text + start, (int)(length - start));
    enum json_tokener_error problem = json_tokener_get_error(tokener);
    /* A bare number or null at the very end is complete only once its end is seen. */
    bool completed = false;
    if (problem == json_tokener_continue) {
        *root = json_tokener_parse_ex(tokener, "\n", 1);
        completed = json_tokener_get_error(tokener) == json_tokener_success;
        if (completed)
            problem = json_tokener_success;
    }
    size_t end = completed ? length : start + json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    assert(end <= length);
    while (problem == json_tokener_success && end < length && text[end] &&
           strchr(" \t\r\n", text[end]))
        end++;
    if (problem == json_tokener_success && end >= length)
        return ORT_OK;
    json_object_put(*root);
    *root = NULL;
    if (problem == json_tokener_continue)
        return ort_error_set(err, ORT_ERROR_DATA, "truncated at byte %zu: the JSON text is not "
                             "complete", length);
    return ort_error_set(err, ORT_ERROR_DATA, "at byte %zu: no JSON (%s)", end,
                         problem == json_tokener_success ? "text behind the end"
                                                         : json_tokener_error_desc(problem));
}

ort_status ort_json_parse_object(const void *text, size_t length, json_object_node **root,
                                 ort_error *err)
{
    *root = NULL;
    if (length > INT_MAX)
        return ORT_OK;
    struct json_tokener *tokener = json_tokener_new();
    if (!tokener)
        return ort_error_memory(err, 1024);
    *root = json_tokener_parse_ex(tokener, text, (int)length);
    json_tokener_free(tokener);
    if (!json_object_is_type(*root, json_type_object)) {
        json_object_put(*root);
        *root = NULL;
    }
    return ORT_OK;
}

ort_status ort_tensor_json_parse(const char *text, size_t length, ort_dtype dtype,
                                 ort_value **value, ort_error *err)
{
    json_object_node *root;
    ORT_TRY(parse(text, length, &root, err));
    ort_status status = read_value(root, dtype, 0, value, err);
    json_object_put(root);
    return status;
}

/* The shape that the caller asked for. */
static ort_status reshape(const ort_read_options *options, ort_value *value, ort_error *err)
{
    ort_shape wanted;
    if (!value || value->kind != ORT_KIND_TENSOR || options->rank == 0)
        return ORT_OK;
    int64_t count = ort_tensor_count(&value->tensor);
    ORT_TRY(ort_purpose_shape(options, count, &wanted, err));
    if (ort_shape_count(&wanted) != count)
        return ort_error_set(err, ORT_ERROR_DATA, "has %lld elements, the shape asked for needs "
                             "%lld", (long long)count, (long long)ort_shape_count(&wanted));
    value->tensor.shape = wanted;
    return ORT_OK;
}

static ort_status add_value(json_object_node *node, const char *name,
                            const ort_read_options *options, ort_tensors *tensors, ort_error *err)
{
    ort_value *value = NULL;
    const ort_purpose *purpose = ort_purpose_find(options, name, 0);
    ort_status status = read_value(node, ort_purpose_dtype(options, purpose), 0, &value, err);
    if (status == ORT_OK)
        status = reshape(options, value, err);
    if (status == ORT_OK && options->rank == 0 && !json_object_is_type(node, json_type_object))
        ort_purpose_fit_single(purpose, value);
    if (status != ORT_OK) {
        ort_value_free(value);
        return name[0] ? ort_error_wrap(err, status, "value '%s'", name) : status;
    }
    return ort_tensors_add_take(tensors, name, value, err);
}

static ort_status read_file(const unsigned char *bytes, size_t count,
                            const ort_read_options *options, ort_tensors *tensors, ort_error *err)
{
    json_object_node *root;
    ORT_TRY(parse((const char *)bytes, count, &root, err));
    ort_status status = ORT_OK;
    json_object_node *wrapped = get(root, "tensors");
    if (is_value(root)) {
        status = add_value(root, "", options, tensors, err);
    } else {
        bool wrap = wrapped && json_object_is_type(wrapped, json_type_object) &&
                    json_object_object_length(root) == 1;
        json_object_node *members = wrap ? wrapped : root;
        json_object_object_foreach(members, name, node) {
            if (status == ORT_OK)
                status = add_value(node, name, options, tensors, err);
        }
    }
    json_object_put(root);
    return status;
}

static bool matches(const unsigned char *bytes, size_t count)
{
    size_t at = ort_starts_with(bytes, count, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (at < count && strchr(" \t\r\n", bytes[at]) && bytes[at])
        at++;
    if (count > 0 && memchr(bytes, '\0', count)) /* the length in front of .safetensors */
        return false;
    return at < count && (bytes[at] == '{' || bytes[at] == '[');
}

static unsigned traits_of(const char *ending)
{
    return ort_format_has_word("jsonl ndjson", ending) ? ORT_FORMAT_LINES : 0;
}

const ort_format_row ort_format_row_json = {
    .format = ORT_FORMAT_JSON,
    .name = "json",
    .endings = "json jsonl ndjson",
    .traits = ORT_FORMAT_MANY | ORT_FORMAT_NESTED | ORT_FORMAT_COLUMNS | ORT_FORMAT_TAKES_PLAIN |
              ORT_FORMAT_TAKES_DTYPE | ORT_FORMAT_TAKES_DIMS,
    .traits_of = traits_of,
    .has_dtype = ort_format_any_dtype,
    .matches = matches,
    .read = read_file,
    .frame = ort_frame_json,
    .write = ort_tensor_json_write,
};
