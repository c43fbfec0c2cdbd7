/* ml_maps.c - dictionaries of ai.onnx.ml: LabelEncoder, CategoryMapper, DictVectorizer, CastMap,
 * ZipMap.
 *
 * A key list becomes a hash table once per node; strings made here point at the model's attributes
 * or at memory of the run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "op/ml/ml_common.h"

/* ---- keys: a list of elements of one type as bytes for a hash map */

typedef struct key_list {
    ort_dtype dtype;
    const void *data;
    size_t count;
} key_list;

static key_list list_of_tensor(const ort_tensor *t)
{
    return (key_list){t->dtype, t->data, (size_t)ort_tensor_count(t)};
}

/* PREFIX_tensor, PREFIX_strings, PREFIX_int64s or PREFIX_floats. */
static key_list read_list(const ort_node *node, const char *prefix)
{
    char name[64];
    size_t count = 0;
    snprintf(name, sizeof name, "%s_tensor", prefix);
    const ort_tensor *t = ort_node_tensor(node, name);
    if (t != NULL)
        return list_of_tensor(t);
    snprintf(name, sizeof name, "%s_strings", prefix);
    const ort_string *strings = ort_node_strings(node, name, &count);
    if (count > 0)
        return (key_list){ORT_DTYPE_STRING, strings, count};
    snprintf(name, sizeof name, "%s_int64s", prefix);
    const int64_t *ints = ort_node_ints(node, name, &count);
    if (count > 0)
        return (key_list){ORT_DTYPE_INT64, ints, count};
    snprintf(name, sizeof name, "%s_floats", prefix);
    const float *floats = ort_node_floats(node, name, &count);
    if (count > 0)
        return (key_list){ORT_DTYPE_FLOAT, floats, count};
    return (key_list){ORT_DTYPE_UNDEFINED, NULL, 0};
}

/* The bytes by which an element is looked up: NaNs are one key, and so are the two zeros. */
static void key_bytes(ort_dtype dtype, const void *data, int64_t i, uint64_t *store,
                      const char **bytes, size_t *length)
{
    size_t size = (size_t)ort_dtype_get(dtype)->bits / 8;
    if (dtype == ORT_DTYPE_STRING) {
        const ort_string *s = &((const ort_string *)data)[i];
        *bytes = s->length > 0 ? s->ptr : "";
        *length = s->length;
        return;
    }
    *store = 0;
    memcpy(store, (const char *)data + (size_t)i * size, size);
    if (dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_DOUBLE) {
        double v = dtype == ORT_DTYPE_FLOAT ? (double)((const float *)data)[i]
                                            : ((const double *)data)[i];
        if (isnan(v))
            *store = UINT64_MAX;
        else if (v == 0)
            *store = 0;
    }
    *bytes = (const char *)store;
    *length = sizeof *store;
}

typedef struct table_entry {
    uint64_t hash;
    const char *bytes;
    size_t length;
    uint32_t index;
} table_entry;

typedef struct table { /* open addressing, in the session's arena */
    table_entry *slots;
    size_t mask;
    ort_dtype dtype;
} table;

static ort_status table_build(ort_prep *p, const key_list *keys, table *t, ort_error *err)
{
    size_t size = 8;
    while (size < 2 * keys->count + 2)
        size *= 2;
    uint64_t *stores = ort_arena_array(p->arena, keys->count + 1, sizeof *stores);
    t->slots = ort_arena_array(p->arena, size, sizeof *t->slots);
    t->mask = size - 1;
    t->dtype = keys->dtype;
    if (stores == NULL || t->slots == NULL)
        return ort_error_memory(err, size * sizeof *t->slots);
    for (size_t i = 0; i < keys->count; i++) {
        const char *bytes;
        size_t length;
        key_bytes(keys->dtype, keys->data, (int64_t)i, &stores[i], &bytes, &length);
        uint64_t hash = ort_hash_bytes(bytes, length, 0);
        size_t at = hash & t->mask;
        /* A repeated key takes its last value. */
        while (t->slots[at].bytes != NULL &&
               (t->slots[at].hash != hash || t->slots[at].length != length ||
                memcmp(t->slots[at].bytes, bytes, length)))
            at = (at + 1) & t->mask;
        t->slots[at] = (table_entry){hash, bytes, length, (uint32_t)i};
    }
    return ORT_OK;
}

static int64_t table_find(const table *t, const void *data, int64_t i)
{
    uint64_t store;
    const char *bytes;
    size_t length;
    key_bytes(t->dtype, data, i, &store, &bytes, &length);
    uint64_t hash = ort_hash_bytes(bytes, length, 0);
    for (size_t at = hash & t->mask; t->slots[at].bytes != NULL; at = (at + 1) & t->mask)
        if (t->slots[at].hash == hash && t->slots[at].length == length &&
            !memcmp(t->slots[at].bytes, bytes, length))
            return t->slots[at].index;
    return -1;
}

/* ---- LabelEncoder and CategoryMapper: element to element */

typedef struct encoder {
    float default_float;
    int64_t default_int64;
    ort_string default_string;
    table table;
    key_list values;
    ort_tensor fallback;  /* scalar of the value type */
    union {
        int64_t i;
        float f;
        ort_string s;
    } store;
} encoder;

static const ort_bind encoder_bind[] = {
    ORT_BIND(encoder, default_float, ORT_MAYBE), ORT_BIND(encoder, default_int64),
    ORT_BIND(encoder, default_string), {0}};

/* LabelEncoder-1 and CategoryMapper: strings to positions (or given integers) and back. */
static ort_dtype legacy_output(ort_dtype in)
{
    return in == ORT_DTYPE_STRING ? ORT_DTYPE_INT64
           : in == ORT_DTYPE_INT64 ? ORT_DTYPE_STRING
                                   : ORT_DTYPE_UNDEFINED;
}

static bool is_legacy(const ort_op *op)
{
    return op->since == 1;
}

static ort_status encoder_infer(ort_infer *x, ort_error *err)
{
    const ort_fact *in = ort_infer_in(x, 0);
    const ort_tensor *fallback = ort_node_tensor(x->node, "default_tensor");
    if (fallback != NULL && (fallback->shape.rank != 1 || fallback->shape.dim[0] != 1))
        return ort_infer_fail(x, err, "default_tensor needs the shape [1]");
    if (fallback != NULL && fallback->dtype != read_list(x->node, "values").dtype)
        return ort_infer_fail(x, err, "default_tensor and the values differ in type");
    if (is_legacy(x->op))
        x->out[0].type.dtype = legacy_output(in != NULL ? in->type.dtype : ORT_DTYPE_UNDEFINED);
    else
        x->out[0].type.dtype = read_list(x->node, "values").dtype;
    return ORT_OK;
}

static void set_fallback(ort_prep *p, encoder *e, ort_dtype dtype)
{
    const ort_tensor *t = ort_node_tensor(p->node, "default_tensor");
    e->fallback = (ort_tensor){.dtype = dtype, .data = &e->store};
    if (t != NULL && t->dtype == dtype && ort_tensor_count(t) >= 1) {
        e->fallback.data = t->data;
    } else if (dtype == ORT_DTYPE_STRING) {
        e->store.s = e->default_string;
    } else if (dtype == ORT_DTYPE_FLOAT) {
        e->store.f = e->default_float;
    } else if (dtype == ORT_DTYPE_DOUBLE) {
        double d = (double)e->default_float;
        memcpy(&e->store.i, &d, sizeof d);
    } else {
        ort_tensor_set_i64(&e->fallback, 0, e->default_int64);
    }
}

static ort_status positions(ort_prep *p, size_t count, key_list *out, ort_error *err)
{
    int64_t *index = ort_arena_array(p->arena, count + 1, sizeof *index);
    if (index == NULL)
        return ort_error_memory(err, count * sizeof *index);
    for (size_t i = 0; i < count; i++)
        index[i] = (int64_t)i;
    *out = (key_list){ORT_DTYPE_INT64, index, count};
    return ORT_OK;
}

static ort_status legacy_lists(ort_prep *p, key_list *keys, key_list *values, ort_error *err)
{
    size_t n = 0, m = 0;
    bool mapper = !strcmp(p->op->name, "CategoryMapper");
    const ort_string *strings =
        ort_node_strings(p->node, mapper ? "cats_strings" : "classes_strings", &n);
    const int64_t *ints = mapper ? ort_node_ints(p->node, "cats_int64s", &m) : NULL;
    key_list text = {ORT_DTYPE_STRING, strings, n}, numbers;
    if (n == 0 || (mapper && n != m))
        return ort_prep_fail(p, err, "the category lists are missing or differ in length");
    if (mapper)
        numbers = (key_list){ORT_DTYPE_INT64, ints, m};
    else
        ORT_TRY(positions(p, n, &numbers, err));
    bool from_text = ort_prep_dtype(p, 0) == ORT_DTYPE_STRING;
    *keys = from_text ? text : numbers;
    *values = from_text ? numbers : text;
    return ORT_OK;
}

static ort_status encoder_prepare(ort_prep *p, ort_error *err)
{
    encoder *e = p->state;
    key_list keys = {0};
    if (is_legacy(p->op)) {
        ORT_TRY(legacy_lists(p, &keys, &e->values, err));
    } else {
        keys = read_list(p->node, "keys");
        e->values = read_list(p->node, "values");
    }
    if (keys.count == 0 || keys.count != e->values.count)
        return ort_prep_fail(p, err, "%zu keys and %zu values", keys.count, e->values.count);
    if (keys.dtype != ort_prep_dtype(p, 0))
        return ort_prep_fail(p, err, "input X is %s, the keys are %s",
                             ort_dtype_name(ort_prep_dtype(p, 0)), ort_dtype_name(keys.dtype));
    set_fallback(p, e, e->values.dtype);
    return table_build(p, &keys, &e->table, err);
}

static ort_status encoder_run(ort_call *call, ort_error *err)
{
    const encoder *e = call->state;
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    size_t size = (size_t)ort_dtype_get(e->values.dtype)->bits / 8;
    for (int64_t i = 0; i < ort_tensor_count(x); i++) {
        int64_t k = table_find(&e->table, x->data, i);
        const char *from = k >= 0 ? (const char *)e->values.data + (size_t)k * size
                                  : (const char *)e->fallback.data;
        memcpy((char *)out->data + (size_t)i * size, from, size);
    }
    return ORT_OK;
}

/* ---- DictVectorizer: a map, or a sequence of maps, to rows in the order of the vocabulary */

static const ort_type *map_type(const ort_infer *x)
{
    const ort_fact *in = ort_infer_in(x, 0);
    return in != NULL && in->type.kind == ORT_TYPE_MAP ? &in->type : NULL;
}

static size_t vocabulary_count(const ort_node *node)
{
    size_t n = 0;
    ort_node_strings(node, "string_vocabulary", &n);
    if (n == 0)
        ort_node_ints(node, "int64_vocabulary", &n);
    return n;
}

static ort_status dict_infer(ort_infer *x, ort_error *err)
{
    const ort_type *map = map_type(x);
    ort_dim dims[2] = {ort_dim_of(1), ort_dim_of((int64_t)vocabulary_count(x->node))};
    size_t strings = 0;
    ort_node_strings(x->node, "string_vocabulary", &strings);
    ort_dtype keys = strings ? ORT_DTYPE_STRING : ORT_DTYPE_INT64;
    if (map != NULL && map->dtype != ORT_DTYPE_UNDEFINED && map->dtype != keys)
        return ort_infer_fail(x, err, "the map has %s keys, the vocabulary is %s",
                              ort_dtype_name(map->dtype), ort_dtype_name(keys));
    ort_infer_set_type(x, 0,
                       map != NULL && map->element != NULL ? map->element->dtype
                                                           : ORT_DTYPE_UNDEFINED,
                       2, dims);
    return ORT_OK;
}

typedef struct dictionary {
    ort_strings strings;
    ort_ints ints;
    int64_t columns;
    table table;
} dictionary;

static const ort_bind dict_bind[] = {
    ORT_BIND_AS(dictionary, strings, "string_vocabulary"),
    ORT_BIND_AS(dictionary, ints, "int64_vocabulary"), {0}};

static ort_status dict_prepare(ort_prep *p, ort_error *err)
{
    dictionary *d = p->state;
    key_list keys = {ORT_DTYPE_STRING, d->strings.ptr, d->strings.count};
    if (keys.count == 0)
        keys = (key_list){ORT_DTYPE_INT64, d->ints.ptr, d->ints.count};
    if (keys.count == 0)
        return ort_prep_fail(p, err, "neither string_vocabulary nor int64_vocabulary is given");
    d->columns = (int64_t)keys.count;
    return table_build(p, &keys, &d->table, err);
}

static ort_status dict_run(ort_call *call, ort_error *err)
{
    const dictionary *d = call->state;
    const table *t = &d->table;
    const ort_value *map = call->in[0];
    if (map == NULL || map->kind != ORT_KIND_MAP)
        return ort_call_fail(call, err, "input X is no map");
    const ort_tensor *keys = &map->items[0]->tensor, *values = &map->items[1]->tensor;
    if (keys->dtype != t->dtype)
        return ort_call_fail(call, err, "the map has %s keys, the vocabulary is %s",
                             ort_dtype_name(keys->dtype), ort_dtype_name(t->dtype));
    ort_shape shape = ort_shape_make(2, (int64_t[]){1, d->columns});
    ORT_TRY(ort_call_output(call, 0, values->dtype, &shape, err));
    ort_tensor *out = ort_call_out(call, 0);
    size_t size = (size_t)ort_dtype_get(values->dtype)->bits / 8;
    memset(out->data, 0, ort_tensor_bytes(out));
    for (int64_t i = 0; i < ort_tensor_count(keys); i++) {
        int64_t column = table_find(t, keys->data, i);
        if (column >= 0)
            memcpy((char *)out->data + (size_t)column * size,
                   (const char *)values->data + (size_t)i * size, size);
    }
    return ORT_OK;
}

/* ---- CastMap: the values of a map in key order, DENSE, or at the keys' positions, SPARSE */

static ort_dtype cast_target(const ort_node *node)
{
    return ort_node_attr_is(node, "cast_to", "TO_FLOAT")    ? ORT_DTYPE_FLOAT
           : ort_node_attr_is(node, "cast_to", "TO_INT64")  ? ORT_DTYPE_INT64
           : ort_node_attr_is(node, "cast_to", "TO_STRING") ? ORT_DTYPE_STRING
                                                            : ORT_DTYPE_UNDEFINED;
}

static ort_status cast_map_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[2] = {ort_dim_of(1), ort_dim_unknown()};
    if (ort_node_attr_is(x->node, "map_form", "SPARSE"))
        dims[1] = ort_dim_of(ort_node_attr_int(x->node, "max_map"));
    if (cast_target(x->node) == ORT_DTYPE_UNDEFINED)
        return ort_infer_fail(x, err, "cast_to is none of TO_FLOAT, TO_INT64, TO_STRING");
    ort_infer_set_type(x, 0, cast_target(x->node), 2, dims);
    return ORT_OK;
}

typedef struct key_order {
    int64_t key;
    int64_t at;
} key_order;

static int by_map_key(const void *a, const void *b)
{
    const key_order *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void *run_alloc(void *arg, size_t bytes) { return ort_call_alloc(arg, bytes); }

typedef struct cast_state {
    enum { TO_FLOAT, TO_INT64, TO_STRING } to;
    bool sparse;
    int64_t max_map;
} cast_state;

static const ort_bind cast_bind[] = {
    ORT_BIND_AS(cast_state, to, "cast_to", ORT_WORDS("TO_FLOAT TO_INT64 TO_STRING")),
    ORT_BIND_AS(cast_state, sparse, "map_form", ORT_WORDS("DENSE SPARSE")),
    ORT_BIND(cast_state, max_map), {0}};

static ort_status cast_map_run(ort_call *call, ort_error *err)
{
    const cast_state *s = call->state;
    const ort_value *map = call->in[0];
    if (map == NULL || map->kind != ORT_KIND_MAP || map->items[0]->tensor.dtype != ORT_DTYPE_INT64)
        return ort_call_fail(call, err, "input X is no map with int64 keys");
    const int64_t *keys = map->items[0]->tensor.data;
    int64_t n = ort_tensor_count(&map->items[0]->tensor), size = n;
    if (s->sparse)
        size = s->max_map;
    ort_shape values_shape = ort_shape_make(2, (int64_t[]){1, n});
    ort_shape shape = ort_shape_make(2, (int64_t[]){1, size});
    ort_dtype dtype = s->to == TO_INT64 ? ORT_DTYPE_INT64
                      : s->to == TO_STRING ? ORT_DTYPE_STRING : ORT_DTYPE_FLOAT;
    ORT_TRY(ort_shape_check(&shape, dtype, err));
    size_t element = (size_t)ort_dtype_get(dtype)->bits / 8;
    key_order *order = ort_call_alloc(call, (size_t)(n + 1) * sizeof *order);
    void *cast = ort_call_alloc(call, (size_t)(n + 1) * element);
    if (order == NULL || cast == NULL)
        return ort_error_memory(err, (size_t)n * element);
    ORT_TRY(ort_call_output(call, 0, dtype, &shape, err));
    ort_tensor *out = ort_call_out(call, 0);
    ort_tensor as = {dtype, values_shape, NULL, cast};
    ort_cast_options options = {.saturate = true, .round_mode = 'u', .alloc = run_alloc,
                                .alloc_arg = call};
    ORT_TRY(ort_tensor_cast(&as, &map->items[1]->tensor, &options, err));
    for (int64_t i = 0; i < n; i++)
        order[i] = (key_order){keys[i], i};
    qsort(order, (size_t)n, sizeof *order, by_map_key);
    memset(out->data, 0, ort_tensor_bytes(out));
    for (int64_t i = 0; i < n; i++) {
        int64_t at = s->sparse ? order[i].key : i;
        if (at < 0 || at >= size)
            continue; /* SPARSE: keys beyond max_map are left out, as the specification says */
        memcpy((char *)out->data + (size_t)at * element,
               (const char *)cast + (size_t)order[i].at * element, element);
    }
    return ORT_OK;
}

/* ---- ZipMap: a row of scores to a map from class label to score */

static ort_status zip_infer(ort_infer *x, ort_error *err)
{
    ort_type *types = ort_arena_array(x->arena, 2, sizeof *types);
    ort_ml_labels labels = ort_ml_read_labels(x->node, "classlabels_int64s", "classlabels_strings");
    if (types == NULL)
        return ort_error_memory(err, 2 * sizeof *types);
    if (labels.count == 0)
        return ort_infer_fail(x, err,
                              "neither classlabels_int64s nor classlabels_strings is given");
    types[0] = ort_type_tensor(ORT_DTYPE_FLOAT, 0, NULL);
    types[1].kind = ORT_TYPE_MAP;
    types[1].dtype = labels.strings != NULL ? ORT_DTYPE_STRING : ORT_DTYPE_INT64;
    types[1].rank = -1;
    types[1].element = &types[0];
    x->out[0].type = (ort_type){.kind = ORT_TYPE_SEQUENCE, .rank = -1, .element = &types[1]};
    return ORT_OK;
}

/* The class labels as a tensor, which all maps of a run share. */
static ort_status zip_keys(const ort_ml_labels *labels, int64_t classes, ort_value **keys,
                           ort_error *err)
{
    ort_shape shape = ort_shape_make(1, &classes);
    ort_dtype dtype = labels->strings != NULL ? ORT_DTYPE_STRING : ORT_DTYPE_INT64;
    ORT_TRY(ort_value_new_tensor_(dtype, &shape, keys, err));
    for (int64_t c = 0; c < classes; c++)
        ort_ml_set_label(labels, &(*keys)->tensor, c, c);
    return ORT_OK;
}

static ort_status zip_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    ort_ml_labels labels =
        ort_ml_read_labels(call->node, "classlabels_int64s", "classlabels_strings");
    ort_value *sequence = NULL, *keys = NULL;
    int64_t rows, classes;
    ort_ml_rows(x, &rows, &classes);
    if (labels.count > 0 && (int64_t)labels.count != classes)
        return ort_call_fail(call, err, "input X has %lld columns, there are %zu class labels",
                             (long long)classes, labels.count);
    ORT_TRY(ort_value_new_sequence_(&sequence, err));
    ort_status status = zip_keys(&labels, classes, &keys, err);
    const int64_t dims[2] = {rows, classes};
    const ort_tensor scores = {x->dtype, ort_shape_make(2, dims), NULL, x->data};
    if (status == ORT_OK)
        status = ort_value_append_maps(sequence, keys, &scores, err);
    ort_value_free(keys); /* the maps hold theirs */
    if (status != ORT_OK)
        ort_value_free(sequence);
    else
        ort_call_set_output(call, 0, sequence);
    return status;
}

/* ---- rows */

static const ort_op_impl label_encoder = {
    .state = sizeof(encoder), .bind = encoder_bind,
    .rule = "[..] -> [..]", .infer = encoder_infer,
    .prepare = encoder_prepare, .run = encoder_run,
};
static const ort_op_impl dict_vectorizer = {
    .state = sizeof(dictionary), .bind = dict_bind, .infer = dict_infer,
    .prepare = dict_prepare, .run = dict_run,
};
static const ort_op_impl cast_map = {
    .state = sizeof(cast_state), .bind = cast_bind, .infer = cast_map_infer, .run = cast_map_run,
};
static const ort_op_impl zip_map = {.infer = zip_infer, .run = zip_run};

const ort_op ort_ops_ml_maps[] = {
    {ML, "LabelEncoder", 1, "X:T1 -> Y:T2", "T1:str,i64 T2:str,i64",
     "classes_strings:ss default_int64:i=-1 default_string:s=_Unused", 0, &label_encoder},
    {ML, "LabelEncoder", 2, "X:T1 -> Y:T2", "T1:str,i64,f32 T2:str,i64,f32",
     "default_float:f=-0 default_int64:i=-1 default_string:s=_Unused keys_floats:fs keys_int64s:is "
     "keys_strings:ss values_floats:fs values_int64s:is values_strings:ss",
     0, &label_encoder,
     .history = "4:T1+f64,i16,i32 T2+f64,i16,i32 +default_tensor:t +keys_tensor:t "
                "+values_tensor:t"},
    {ML, "CategoryMapper", 1, "X:T1 -> Y:T2", "T1:str,i64 T2:str,i64",
     "cats_int64s:is cats_strings:ss default_int64:i=-1 default_string:s=_Unused", 0,
     &label_encoder},
    {ML, "DictVectorizer", 1, "X:T1 -> Y:T2",
     "T1:map(str,i64),map(i64,str),map(i64,f32),map(i64,f64),map(str,f32),map(str,f64) "
     "T2:i64,f32,f64,str",
     "int64_vocabulary:is string_vocabulary:ss", ORT_TRAIT_DYNAMIC, &dict_vectorizer},
    {ML, "CastMap", 1, "X:T1 -> Y:T2", "T1:map(i64,str),map(i64,f32) T2:str,f32,i64",
     "cast_to:s=TO_FLOAT map_form:s=DENSE max_map:i=1", ORT_TRAIT_DYNAMIC, &cast_map},
    {ML, "ZipMap", 1, "X:f32 -> Z:T", "T:seq(map(str,f32)),seq(map(i64,f32))",
     "classlabels_int64s:is classlabels_strings:ss", 0, &zip_map},
    {0},
};
