/* example_ops.c - an operator library: five operators of the domain "example", each to show another
 * part of the interface (ort.h, custom operators).
 *
 *     cc -O2 -shared -fPIC example_ops.c $(pkg-config --cflags ort) -o example_ops.so
 *     ort-inspect --supports --ops-lib ./example_ops.so --grep example
 *     ort-run net.onnx --ops-lib ./example_ops.so -i x.npy
 *
 *   Clip      an elementwise operator of several types, with attributes, over the threads
 *   Above     an optional input, and outputs whose shape depends on the data
 *   Recode    a constant input that is sorted once, when the session is made
 *   RunningMean  state that runs change, guarded against concurrent runs
 *   Join      strings, variadic inputs, no inference: the shape comes from the run
 */
#include <ort.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Output 0 as input 0. */
static ort_status same_as_input(ort_ops_node *node, ort_error *err)
{
    const ort_ops_tensor *x = node->api->input(node, 0);
    return node->api->set_type(node, 0, x->dtype, x->rank, x->dims, err);
}

/* ---- Clip: Y = X below low: low + leak * (X - low), above high the same way */

#define GRAIN 16384 /* elements of one task */

typedef struct clip {
    double low, high, leak;
    const ort_ops_tensor *x;
    ort_ops_tensor *y;
} clip;

static double clip_one(const clip *c, double x)
{
    return x < c->low    ? c->low + c->leak * (x - c->low)
           : x > c->high ? c->high + c->leak * (x - c->high)
                         : x;
}

#define CLIP_RANGE(type)                                                                           \
    for (int64_t i = begin; i < end; i++)                                                          \
    ((type *)c->y->data)[i] = (type)clip_one(c, (double)((const type *)c->x->data)[i])

static void clip_task(void *arg, size_t task, int thread)
{
    const clip *c = arg;
    int64_t begin = (int64_t)task * GRAIN, end = begin + GRAIN;
    (void)thread;
    if (end > c->x->count)
        end = c->x->count;
    switch (c->x->dtype) {
    case ORT_DTYPE_FLOAT: CLIP_RANGE(float); break;
    case ORT_DTYPE_DOUBLE: CLIP_RANGE(double); break;
    default: CLIP_RANGE(int32_t); break;
    }
}

static ort_status clip_run(ort_ops_node *node, void *state, ort_error *err)
{
    const ort_ops_api *api = node->api;
    clip c = {api->attr_float(node, "low"), api->attr_float(node, "high"),
              api->attr_float(node, "leak"), api->input(node, 0), NULL};
    (void)state;
    if (c.low > c.high)
        return api->fail(err, ORT_ERROR_RUN, "low is %g, above high, which is %g", c.low, c.high);
    c.y = api->output(node, 0, c.x->rank, c.x->dims, err);
    if (!c.y)
        return err->status;
    api->parallel(node, (size_t)((c.x->count + GRAIN - 1) / GRAIN), clip_task, &c);
    return ORT_OK;
}

/* ---- Above: the elements of X above a threshold (default 0), and where they stand (row-major) */

static ort_status above_infer(ort_ops_node *node, ort_error *err)
{
    const int64_t unknown = -1; /* the type follows from the signature */
    if (node->api->set_type(node, 0, ORT_DTYPE_UNDEFINED, 1, &unknown, err))
        return err->status;
    return node->api->set_type(node, 1, ORT_DTYPE_UNDEFINED, 1, &unknown, err);
}

static ort_status above_run(ort_ops_node *node, void *state, ort_error *err)
{
    const ort_ops_api *api = node->api;
    const ort_ops_tensor *x = api->input(node, 0), *threshold = api->input(node, 1);
    const float *in = x->data;
    float limit = 0;
    int64_t found = 0;
    (void)state;
    if (threshold && threshold->count != 1)
        return api->fail(err, ORT_ERROR_RUN, "threshold has %lld elements, needs 1",
                         (long long)threshold->count);
    if (threshold)
        limit = *(const float *)threshold->data;
    for (int64_t i = 0; i < x->count; i++)
        found += in[i] > limit;
    ort_ops_tensor *values = api->output(node, 0, 1, &found, err);
    ort_ops_tensor *places = values ? api->output(node, 1, 1, &found, err) : NULL;
    if (!places)
        return err->status;
    for (int64_t i = 0, k = 0; i < x->count; i++)
        if (in[i] > limit) {
            ((float *)values->data)[k] = in[i];
            ((int64_t *)places->data)[k++] = i;
        }
    return ORT_OK;
}

/* ---- Recode: each X found in the first column of the table becomes the second column's value */

typedef struct pair {
    int64_t from, to;
} pair;

typedef struct table {
    size_t count;
    pair *pairs;
} table;

static int by_from(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* The state lies in the runtime's memory, so there is nothing to destroy. */
static ort_status recode_create(ort_ops_node *node, void **state, ort_error *err)
{
    const ort_ops_api *api = node->api;
    const ort_ops_tensor *given = api->input(node, 1);
    if (!given->data || given->rank != 2 || given->dims[1] != 2)
        return api->fail(err, ORT_ERROR_MODEL, "table must be a constant of shape [n,2]");
    table *t = api->alloc(node, sizeof *t);
    pair *pairs = api->alloc(node, (size_t)given->dims[0] * sizeof *pairs);
    if (!t || !pairs)
        return api->fail(err, ORT_ERROR_MEMORY, "out of memory");
    memcpy(pairs, given->data, (size_t)given->dims[0] * sizeof *pairs);
    qsort(pairs, (size_t)given->dims[0], sizeof *pairs, by_from);
    *t = (table){(size_t)given->dims[0], pairs};
    *state = t;
    return ORT_OK;
}

static ort_status recode_run(ort_ops_node *node, void *state, ort_error *err)
{
    const ort_ops_api *api = node->api;
    const table *t = state;
    const ort_ops_tensor *x = api->input(node, 0);
    ort_ops_tensor *y = api->output(node, 0, x->rank, x->dims, err);
    int64_t other = api->attr_int(node, "default");
    bool keep = !api->attr_given(node, "default");
    if (!y)
        return err->status;
    for (int64_t i = 0; i < x->count; i++) {
        pair key = {((const int64_t *)x->data)[i], 0};
        const pair *found = NULL;
        if (t->count)
            found = bsearch(&key, t->pairs, t->count, sizeof key, by_from);
        ((int64_t *)y->data)[i] = found ? found->to : keep ? key.from : other;
    }
    return ORT_OK;
}

/* ---- RunningMean: the mean of all X that the session has seen, this one included */

typedef struct mean {
    pthread_mutex_t lock;
    double sum, count;
} mean;

static ort_status mean_create(ort_ops_node *node, void **state, ort_error *err)
{
    mean *m = calloc(1, sizeof *m);
    if (!m)
        return node->api->fail(err, ORT_ERROR_MEMORY, "out of memory");
    pthread_mutex_init(&m->lock, NULL);
    *state = m;
    return ORT_OK;
}

static void mean_destroy(void *state)
{
    mean *m = state;
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static ort_status mean_infer(ort_ops_node *node, ort_error *err)
{
    return node->api->set_type(node, 0, ORT_DTYPE_UNDEFINED, 0, NULL, err);
}

static ort_status mean_run(ort_ops_node *node, void *state, ort_error *err)
{
    mean *m = state;
    const ort_ops_tensor *x = node->api->input(node, 0);
    ort_ops_tensor *y = node->api->output(node, 0, 0, NULL, err);
    double sum = 0;
    if (!y)
        return err->status;
    for (int64_t i = 0; i < x->count; i++)
        sum += (double)((const float *)x->data)[i];
    pthread_mutex_lock(&m->lock);
    m->sum += sum;
    m->count += (double)x->count;
    *(float *)y->data = m->count > 0 ? (float)(m->sum / m->count) : 0;
    pthread_mutex_unlock(&m->lock);
    return ORT_OK;
}

/* ---- Join: element by element, the strings of all inputs with a separator between them */

static ort_status join_one(ort_ops_node *node, ort_ops_tensor *y, int64_t index, ort_error *err)
{
    const ort_ops_api *api = node->api;
    size_t gap, total = 0, used = 0, length;
    const char *separator = api->attr_string(node, "separator", &gap);
    int count = api->input_count(node);
    for (int i = 0; i < count; i++) {
        api->get_string(api->input(node, i), index, &length);
        total += length + gap;
    }
    char *text = malloc(total + 1);
    if (!text)
        return api->fail(err, ORT_ERROR_MEMORY, "out of memory");
    for (int i = 0; i < count; i++) {
        const char *part = api->get_string(api->input(node, i), index, &length);
        memcpy(text + used, separator, i ? gap : 0);
        used += i ? gap : 0;
        memcpy(text + used, part, length);
        used += length;
    }
    ort_status status = api->set_string(node, y, index, text, used, err);
    free(text);
    return status;
}

static ort_status join_run(ort_ops_node *node, void *state, ort_error *err)
{
    const ort_ops_api *api = node->api;
    const ort_ops_tensor *first = api->input(node, 0);
    (void)state;
    for (int i = 1; i < api->input_count(node); i++)
        if (api->input(node, i)->count != first->count)
            return api->fail(err, ORT_ERROR_RUN, "input %d has %lld strings, input 0 has %lld", i,
                             (long long)api->input(node, i)->count, (long long)first->count);
    ort_ops_tensor *y = api->output(node, 0, first->rank, first->dims, err);
    ort_status status = y ? ORT_OK : err->status;
    for (int64_t i = 0; status == ORT_OK && i < y->count; i++)
        status = join_one(node, y, i, err);
    return status;
}

/* ---- the table */

static const ort_ops_row rows[] = {
    {.domain = "example",
     .name = "Clip",
     .since = 1,
     .signature = "X:T -> Y:T",
     .types = "T:f32,f64,i32",
     .attributes = "low:f=0 high:f=1 leak:f=0",
     .infer = same_as_input,
     .run = clip_run},
    {.domain = "example",
     .name = "Above",
     .since = 1,
     .flags = ORT_OPS_DYNAMIC,
     .signature = "X:f32,threshold?:f32 -> values:f32,places?:i64",
     .infer = above_infer,
     .run = above_run},
    {.domain = "example",
     .name = "Recode",
     .since = 1,
     .signature = "X:i64,table:i64 -> Y:i64",
     .attributes = "default:i",
     .infer = same_as_input,
     .create = recode_create,
     .run = recode_run},
    {.domain = "example",
     .name = "RunningMean",
     .since = 1,
     .flags = ORT_OPS_IMPURE,
     .signature = "X:f32 -> mean:f32",
     .infer = mean_infer,
     .create = mean_create,
     .destroy = mean_destroy,
     .run = mean_run},
    {.domain = "example",
     .name = "Join",
     .since = 1,
     .signature = "parts*:str -> text:str",
     .attributes = "separator:s=,",
     .run = join_run},
};

const ort_ops_library ort_ops_entry = {.abi = 1,
                                       .row_bytes = sizeof *rows,
                                       .name = "example",
                                       .version = "1.0",
                                       .rows = rows,
                                       .row_count = sizeof rows / sizeof *rows};
