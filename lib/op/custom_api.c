/* custom_api.c - what an operator library may ask the runtime during a callback (ort_ops_api of
 * ort.h). A question that the phase or the row has no answer to is remembered, and fails the
 * callback once it returns: a typing error in an attribute's name must not pass as 0.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "op/custom.h"

static void misuse(custom_node *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void misuse(custom_node *c, const char *format, ...)
{
    va_list args;
    if (c->misuse[0])
        return;
    va_start(args, format);
    vsnprintf(c->misuse, sizeof c->misuse, format, args);
    va_end(args);
}

static bool in_phase(custom_node *c, int phase, const char *what)
{
    if (c->phase == phase)
        return true;
    misuse(c, "%s is for %s only", what, phase == CUSTOM_INFER ? "infer" : "run");
    return false;
}

/* ---- the node */

static int api_opset(const ort_ops_node *node)
{
    return ort_custom_hidden(node)->node->opset;
}

static int api_input_count(const ort_ops_node *node)
{
    return ort_custom_hidden(node)->in_count;
}

static int api_output_count(const ort_ops_node *node)
{
    return ort_custom_hidden(node)->out_count;
}

static const ort_ops_tensor *api_input(const ort_ops_node *node, int index)
{
    const custom_node *c = ort_custom_hidden(node);
    return index >= 0 && index < c->in_count && c->present[index] ? &c->in[index] : NULL;
}

static bool api_wanted(const ort_ops_node *node, int output)
{
    const custom_node *c = ort_custom_hidden(node);
    return output >= 0 && output < c->out_count && c->node->outputs[output] != ORT_ID_NONE;
}

/* ---- attributes */

/* The node's attribute or the row's default; NULL when there is neither. */
static const ort_attr *find_attr(custom_node *c, const char *name, ort_attr_type type)
{
    const ort_schema *s = &c->row->schema;
    int i = 0;
    while (i < s->attr_count && strcmp(s->attrs[i].name, name))
        i++;
    if (i == s->attr_count && (c->row->op.traits & ORT_TRAIT_ANY_ATTRIBUTES)) {
        const ort_attr *own = ort_node_attr(c->node, name);
        return own && (!type || own->type == type) ? own : NULL;
    }
    if (i == s->attr_count || (type && s->attrs[i].type != type)) {
        misuse(c, i == s->attr_count ? "it asks for attribute '%s', which its row doesn't list"
                                     : "it reads attribute '%s' as another kind than its row says",
               name);
        return NULL;
    }
    const ort_attr *attr = ort_node_attr(c->node, name);
    if (attr) /* an empty list may be stored as any list */
        return attr->type == s->attrs[i].type ? attr : NULL;
    return c->row->defaults[i].type ? &c->row->defaults[i] : NULL;
}

static bool api_attr_given(const ort_ops_node *node, const char *name)
{
    (void)find_attr(ort_custom_hidden(node), name, ORT_ATTR_UNDEFINED);
    return ort_node_has(ort_custom_hidden(node)->node, name);
}

static int64_t api_attr_int(const ort_ops_node *node, const char *name)
{
    const ort_attr *attr = find_attr(ort_custom_hidden(node), name, ORT_ATTR_INT);
    return attr ? attr->i : 0;
}

static float api_attr_float(const ort_ops_node *node, const char *name)
{
    const ort_attr *attr = find_attr(ort_custom_hidden(node), name, ORT_ATTR_FLOAT);
    return attr ? attr->f : 0;
}

static const char *give_string(const ort_string *s, size_t *length)
{
    if (length)
        *length = s ? s->length : 0;
    return s ? s->ptr : NULL;
}

static const char *api_attr_string(const ort_ops_node *node, const char *name, size_t *length)
{
    const ort_attr *attr = find_attr(ort_custom_hidden(node), name, ORT_ATTR_STRING);
    return give_string(attr ? &attr->s : NULL, length);
}

static const ort_ops_tensor *show_tensor(custom_node *c, const ort_tensor *t)
{
    ort_ops_tensor *view = t ? ort_arena_alloc(&c->scratch, sizeof *view) : NULL;
    if (view)
        *view = (ort_ops_tensor){.dtype = t->dtype,
                                 .rank = t->shape.rank,
                                 .dims = t->shape.dim,
                                 .count = ort_tensor_count(t),
                                 .data = t->data};
    return view;
}

static const ort_ops_tensor *api_attr_tensor(const ort_ops_node *node, const char *name)
{
    const ort_attr *attr = find_attr(ort_custom_hidden(node), name, ORT_ATTR_TENSOR);
    return show_tensor(ort_custom_hidden(node), attr ? attr->t : NULL);
}

static const int64_t *api_attr_ints(const ort_ops_node *node, const char *name, size_t *count)
{
    const ort_attr *attr = find_attr(ort_custom_hidden(node), name, ORT_ATTR_INTS);
    *count = attr ? attr->count : 0;
    return attr ? attr->ints : NULL;
}

static const float *api_attr_floats(const ort_ops_node *node, const char *name, size_t *count)
{
    const ort_attr *attr = find_attr(ort_custom_hidden(node), name, ORT_ATTR_FLOATS);
    *count = attr ? attr->count : 0;
    return attr ? attr->floats : NULL;
}

static size_t api_attr_count(const ort_ops_node *node, const char *name)
{
    const ort_attr *attr = find_attr(ort_custom_hidden(node), name, ORT_ATTR_UNDEFINED);
    return attr && attr->type >= ORT_ATTR_FLOATS ? attr->count : 0;
}

static const char *api_attr_strings_at(const ort_ops_node *node, const char *name, size_t index,
                                       size_t *length)
{
    const ort_attr *attr = find_attr(ort_custom_hidden(node), name, ORT_ATTR_STRINGS);
    return give_string(attr && index < attr->count ? &attr->strings[index] : NULL, length);
}

static const ort_ops_tensor *api_attr_tensors_at(const ort_ops_node *node, const char *name,
                                                 size_t index)
{
    const ort_attr *attr = find_attr(ort_custom_hidden(node), name, ORT_ATTR_TENSORS);
    return show_tensor(ort_custom_hidden(node),
                       attr && index < attr->count ? &attr->tensors[index] : NULL);
}

/* ---- strings, memory */

static const char *api_get_string(const ort_ops_tensor *tensor, int64_t index, size_t *length)
{
    const ort_string *s = tensor->data;
    bool there = s && tensor->dtype == ORT_DTYPE_STRING && index >= 0 && index < tensor->count;
    *length = there ? s[index].length : 0;
    return there && s[index].ptr ? s[index].ptr : "";
}

static void *api_alloc(ort_ops_node *node, size_t bytes)
{
    custom_node *c = ort_custom_hidden(node);
    return ort_arena_alloc_aligned(c->phase == CUSTOM_CREATE ? c->p->arena : &c->scratch, bytes, 64,
                                   1);
}

/* ---- infer */

static ort_status api_set_type(ort_ops_node *node, int output, ort_dtype dtype, int rank,
                               const int64_t *dims, ort_error *err)
{
    custom_node *c = ort_custom_hidden(node);
    ort_dim list[ORT_MAX_RANK];
    if (!in_phase(c, CUSTOM_INFER, "set_type"))
        return ort_error_set(err, ORT_ERROR_MODEL, "%s", c->misuse);
    if (output < 0 || rank > ORT_MAX_RANK || rank < -1 || (unsigned)dtype >= ORT_DTYPE_COUNT)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "operator library '%s': set_type of output %d, type %d, rank %d: out "
                             "of range",
                             c->row->library->name, output, (int)dtype, rank);
    if (output >= c->out_count)
        return ORT_OK;
    for (int i = 0; i < rank; i++)
        list[i] = ort_custom_dim(c, dims[i]);
    if (dtype == ORT_DTYPE_UNDEFINED) /* that of the signature */
        dtype = c->x->out[output].type.dtype;
    c->x->out[output].type = ort_type_tensor(dtype, rank, list);
    return ORT_OK;
}

static int64_t api_dim(ort_ops_node *node, char op, int64_t a, int64_t b)
{
    custom_node *c = ort_custom_hidden(node);
    static const struct {
        char op;
        ort_dim (*fn)(ort_dim_table *table, ort_dim a, ort_dim b);
    } table[] = {
        {'+', ort_dim_add},      {'-', ort_dim_sub}, {'*', ort_dim_mul}, {'/', ort_dim_div},
        {'^', ort_dim_ceil_div}, {'m', ort_dim_min}, {'M', ort_dim_max},
    };
    if (!in_phase(c, CUSTOM_INFER, "dim"))
        return -1;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].op != op)
            continue;
        ort_dim x = ort_custom_dim(c, a), y = ort_custom_dim(c, b);
        bool open = !ort_dim_known(x) || !ort_dim_known(y);
        return open && !c->x->dims ? -1 : ort_custom_size(c, table[i].fn(c->x->dims, x, y));
    }
    misuse(c, "dim has no operation '%c'", op);
    return -1;
}

/* ---- run */

/* Memory for an output that nobody reads. */
static ort_ops_tensor *spare_output(custom_node *c, int index, ort_dtype dtype,
                                    const ort_shape *shape, ort_error *err)
{
    const ort_tensor tensor = {.dtype = dtype, .shape = *shape};
    ort_ops_tensor *view = index < c->out_count ? &c->out[index] : NULL;
    int64_t *dims = ort_arena_array(&c->scratch, (size_t)shape->rank + 1, sizeof *dims);
    void *data = ort_arena_alloc_aligned(&c->scratch, ort_tensor_bytes(&tensor), 64, 0);
    if (!view)
        view = ort_arena_alloc(&c->scratch, sizeof *view);
    if (!dims || !data || !view) {
        ort_error_memory(err, ort_tensor_bytes(&tensor));
        return NULL;
    }
    memcpy(dims, shape->dim, (size_t)shape->rank * sizeof *dims);
    *view = (ort_ops_tensor){dtype, shape->rank, dims, ort_tensor_count(&tensor), data};
    return view;
}

/* Storage of the shape asked for: there already when inference said it, else made now. */
static ort_status settle_storage(custom_node *c, int index, const ort_shape *shape, ort_error *err)
{
    const ort_value *value = c->call->out[index];
    char got[200], want[200];
    bool dynamic = c->row->op.traits & ORT_TRAIT_DYNAMIC;
    if (!dynamic && value->kind == ORT_KIND_TENSOR) {
        if (ort_shape_equal(&value->tensor.shape, shape))
            return ORT_OK;
        return ort_error_set(err, ORT_ERROR_RUN,
                             "operator library '%s': run asks for output %d as %s, infer said %s; "
                             "a shape that depends on data needs ORT_OPS_DYNAMIC",
                             c->row->library->name, index, ort_shape_format(shape, got, sizeof got),
                             ort_shape_format(&value->tensor.shape, want, sizeof want));
    }
    return ort_call_output(c->call, index, c->state->dtypes[index], shape, err);
}

static ort_dtype spare_dtype(const custom_node *c, int index)
{
    ort_dtype dtype = index < c->out_count ? c->state->dtypes[index] : ORT_DTYPE_UNDEFINED;
    return dtype ? dtype : ORT_DTYPE_COMPLEX128; /* not known: the widest */
}

static ort_ops_tensor *api_output(ort_ops_node *node, int index, int rank, const int64_t *dims,
                                  ort_error *err)
{
    custom_node *c = ort_custom_hidden(node);
    if (!in_phase(c, CUSTOM_RUN, "output") || index < 0 || rank < 0 || rank > ORT_MAX_RANK) {
        ort_error_set(err, ORT_ERROR_RUN, "operator library '%s': output %d of rank %d: %s",
                      c->row->library->name, index, rank,
                      c->misuse[0] ? c->misuse : "out of range");
        return NULL;
    }
    ort_shape shape = ort_shape_make(rank, dims);
    bool spare = index >= c->out_count || !c->call->out[index];
    ort_dtype dtype = spare ? spare_dtype(c, index) : c->state->dtypes[index];
    if (ort_shape_check(&shape, dtype, err))
        return NULL;
    if (spare) {
        ort_ops_tensor *view = spare_output(c, index, dtype, &shape, err);
        if (view && dtype == ORT_DTYPE_STRING && view->count)
            memset(view->data, 0, (size_t)view->count * sizeof(ort_string));
        return view;
    }
    if (settle_storage(c, index, &shape, err))
        return NULL;
    const ort_tensor *t = &c->call->out[index]->tensor;
    if (t->dtype == ORT_DTYPE_STRING && t->data && !c->asked[index])
        memset(t->data, 0, ort_tensor_bytes(t));
    c->asked[index] = true;
    c->out[index] = (ort_ops_tensor){t->dtype, rank, t->shape.dim, ort_tensor_count(t), t->data};
    return &c->out[index];
}

static ort_status api_set_string(ort_ops_node *node, ort_ops_tensor *output, int64_t index,
                                 const char *text, size_t length, ort_error *err)
{
    custom_node *c = ort_custom_hidden(node);
    ort_string *s = output->data;
    if (!in_phase(c, CUSTOM_RUN, "set_string") || output->dtype != ORT_DTYPE_STRING || index < 0 ||
        index >= output->count)
        return ort_error_set(err, ORT_ERROR_RUN,
                             "operator library '%s': set_string of element %lld of a %s tensor of "
                             "%lld elements",
                             c->row->library->name, (long long)index,
                             ort_dtype_name(output->dtype), (long long)output->count);
    char *copy = ort_call_alloc(c->call, length + 1);
    if (!copy)
        return ort_error_memory(err, length);
    if (length)
        memcpy(copy, text, length);
    s[index] = (ort_string){copy, length};
    return ORT_OK;
}

static int api_threads(const ort_ops_node *node)
{
    const custom_node *c = ort_custom_hidden(node);
    return c->call && c->call->pool ? ort_pool_threads(c->call->pool) : 1;
}

static void api_parallel(const ort_ops_node *node, size_t count, ort_ops_task *task, void *arg)
{
    custom_node *c = ort_custom_hidden(node);
    if (in_phase(c, CUSTOM_RUN, "parallel"))
        ort_call_parallel(c->call, count, task, arg);
}

static bool api_cancelled(const ort_ops_node *node)
{
    custom_node *c = ort_custom_hidden(node);
    return in_phase(c, CUSTOM_RUN, "cancelled") && ort_budget_over(ort_budget_current());
}

static uint64_t api_seed(const ort_ops_node *node)
{
    custom_node *c = ort_custom_hidden(node);
    return in_phase(c, CUSTOM_RUN, "seed") ? c->call->seed : 0;
}

const ort_ops_api ort_custom_api = {
    .abi = ORT_OPS_ABI,
    .version = ort_version,
    .opset = api_opset,
    .input_count = api_input_count,
    .output_count = api_output_count,
    .input = api_input,
    .wanted = api_wanted,
    .attr_given = api_attr_given,
    .attr_int = api_attr_int,
    .attr_float = api_attr_float,
    .attr_string = api_attr_string,
    .attr_tensor = api_attr_tensor,
    .attr_ints = api_attr_ints,
    .attr_floats = api_attr_floats,
    .attr_count = api_attr_count,
    .attr_strings_at = api_attr_strings_at,
    .attr_tensors_at = api_attr_tensors_at,
    .get_string = api_get_string,
    .alloc = api_alloc,
    .fail = ort_error_set,
    .set_type = api_set_type,
    .dim = api_dim,
    .output = api_output,
    .set_string = api_set_string,
    .threads = api_threads,
    .parallel = api_parallel,
    .cancelled = api_cancelled,
    .seed = api_seed,
    .data = ort_custom_data,
    .node_name = ort_custom_node_name,
    .input_name = ort_custom_input_name,
    .output_name = ort_custom_output_name,
    .attr_name = ort_custom_attr_name,
    .attr_kind = ort_custom_attr_kind,
    .output_type = ort_custom_output_type,
    .dim_name = ort_custom_dim_name,
    .dim_named = ort_custom_dim_named,
    .input_value = ort_custom_input_value,
};
