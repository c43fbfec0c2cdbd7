/* opened.c - a second size for a model with an axis made symbolic (opened.h). The original takes
 * one size only; what it says about two samples must be what the other says about both at once. */
#include "verify/opened.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "made_up/made_up.h"
#include "verify/agree.h"

typedef struct double_run {
    const ort_session *a, *b;
    const ort_verify_options *options;
    ort_value **sets[2], **joined; /* inputs: two of a, one of b, in b's order */
    ort_value **out[2], **out_joined;
    bool first_axis; /* every opened axis is the first */
    char *text;
} double_run;

static const ort_port *port_named(const ort_port *ports, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(ports[i].name, name))
            return &ports[i];
    return NULL;
}

/* The axis that is open in `wide` and has a size in `fixed`; -1. */
static int opened_axis(const ort_type *fixed, const ort_type *wide)
{
    if (fixed->kind != ORT_TYPE_TENSOR || fixed->rank != wide->rank)
        return -1;
    for (int d = 0; d < fixed->rank; d++)
        if (ort_dim_known(fixed->dim[d]) && !ort_dim_known(wide->dim[d]))
            return d;
    return -1;
}

static int input_axis(const ort_session *a, const ort_port *b)
{
    const ort_port *port = port_named(a->inputs, a->input_count, b->name);
    return port ? opened_axis(&port->type, &b->type) : -1;
}

/* The axis of b's input i to be doubled: an opened one, or one of the same symbol that was open in
 * a already; -1. *size: what it must be in a. */
static int growing_axis(const ort_session *a, const ort_session *b, int i, int64_t *size)
{
    const ort_type *type = &b->inputs[i].type;
    int axis = -1;
    for (int n = 0; n < b->input_count && axis < 0; n++) {
        int k = (i + n) % b->input_count; /* its own first */
        int opened = input_axis(a, &b->inputs[k]);
        uint32_t symbol = opened < 0 ? ORT_DIM_UNKNOWN : b->inputs[k].type.dim[opened].expr;
        for (int d = 0; symbol != ORT_DIM_UNKNOWN && d < type->rank && axis < 0; d++)
            if (type->dim[d].expr == symbol) {
                const char *name = b->inputs[k].name;
                axis = n ? d : opened;
                *size = port_named(a->inputs, a->input_count, name)->type.dim[opened].size;
            }
    }
    return axis;
}

bool ort_opened(const ort_session *a, const ort_session *b)
{
    for (int i = 0; i < b->input_count; i++)
        if (input_axis(a, &b->inputs[i]) >= 0)
            return true;
    return false;
}

/* x and y, of one shape and type, along `axis`. */
static ort_status join(const ort_value *x, const ort_value *y, int axis, ort_value **z,
                       ort_error *err)
{
    ort_shape shape = x->tensor.shape;
    int64_t outer = 1, bytes = (int64_t)ort_tensor_bytes(&x->tensor);
    for (int d = 0; d < axis; d++)
        outer *= shape.dim[d];
    shape.dim[axis] *= 2;
    ORT_TRY(ort_value_new_tensor_(x->tensor.dtype, &shape, z, err));
    int64_t piece = outer ? bytes / outer : 0;
    char *to = (*z)->tensor.data;
    for (int64_t i = 0; i < outer; i++) {
        memcpy(to + 2 * i * piece, (const char *)x->tensor.data + i * piece, (size_t)piece);
        memcpy(to + (2 * i + 1) * piece, (const char *)y->tensor.data + i * piece, (size_t)piece);
    }
    return ORT_OK;
}

static void free_values(ort_value **values, int count)
{
    for (int i = 0; values && i < count; i++)
        ort_value_free(values[i]);
    free(values);
}

static ort_value **new_values(int count) { return calloc((size_t)count + 1, sizeof(ort_value *)); }

static bool allocate(double_run *r)
{
    for (int s = 0; s < 2; s++) {
        r->sets[s] = new_values(r->a->input_count);
        r->out[s] = new_values(r->a->output_count);
    }
    r->joined = new_values(r->b->input_count);
    r->out_joined = new_values(r->b->output_count);
    return r->sets[0] && r->sets[1] && r->out[0] && r->out[1] && r->joined && r->out_joined;
}

/* Inputs whose axis stays are the same in both sets, or the halves would not be comparable. */
static ort_status make_inputs(double_run *r, int trial, ort_error *err)
{
    for (int s = 0; s < 2; s++)
        ORT_TRY(ort_exec_make_inputs(r->a, r->options->seed + (uint64_t)s, 0, trial, r->sets[s],
                                     err));
    for (int i = 0; i < r->b->input_count; i++) {
        const ort_port *port = port_named(r->a->inputs, r->a->input_count, r->b->inputs[i].name);
        int64_t size = 0;
        int axis = growing_axis(r->a, r->b, i, &size);
        size_t at = port ? (size_t)(port - r->a->inputs) : 0;
        if (!port || !r->sets[0][at])
            continue;
        if (axis >= 0 && r->sets[0][at]->tensor.shape.dim[axis] != size)
            return ort_error_set(err, ORT_ERROR_RUN,
                                 "input '%s' goes with an input of %lld, but is made up with %lld",
                                 port->name, (long long)size,
                                 (long long)r->sets[0][at]->tensor.shape.dim[axis]);
        if (axis >= 0) {
            r->first_axis = r->first_axis && axis == 0;
            ORT_TRY(join(r->sets[0][at], r->sets[1][at], axis, &r->joined[i], err));
            continue;
        }
        ort_value_free(r->sets[1][at]);
        r->sets[1][at] = ort_value_retain(r->sets[0][at]);
        r->joined[i] = ort_value_retain(r->sets[0][at]);
    }
    return ORT_OK;
}

static ort_status compare_output(const double_run *r, int index, ort_error *err)
{
    const ort_port *port = &r->b->outputs[index];
    const ort_port *old = port_named(r->a->outputs, r->a->output_count, port->name);
    ort_value *both = NULL;
    ort_difference d = {.equal = true};
    ort_agreement how = {.tolerance = r->options->tolerance};
    if (!old)
        return ORT_OK;
    const ort_value *x = r->out[0][old - r->a->outputs], *y = r->out[1][old - r->a->outputs];
    const ort_value *z = r->out_joined[index];
    if (x->kind != ORT_KIND_TENSOR || z->kind != ORT_KIND_TENSOR || x->tensor.shape.rank < 1 ||
        x->tensor.dtype == ORT_DTYPE_STRING || !ort_shape_equal(&x->tensor.shape, &y->tensor.shape))
        return ORT_OK;
    ORT_TRY(join(x, y, 0, &both, err));
    ort_status status = ort_agree_compare(both, z, &how, &d, err);
    if (status == ORT_OK && !d.equal)
        snprintf(r->text, 600, "at twice the size, output '%s' is not that of the original on "
                               "either half: %.400s", port->name, d.text);
    ort_value_free(both);
    return status;
}

static ort_status run(double_run *r, int trial, ort_error *err)
{
    ort_run_options options = ORT_RUN_OPTIONS_INIT;
    ort_error why = {0};
    options.seed = r->options->seed;
    ORT_TRY(make_inputs(r, trial, err));
    for (int s = 0; s < 2; s++)
        ORT_TRY(ort_session_run_all(r->a, r->sets[s], r->out[s], &options, err));
    ort_status refused = ort_session_run_all(r->b, r->joined, r->out_joined, &options, &why);
    if (refused == ORT_ERROR_TIMEOUT || refused == ORT_ERROR_MEMORY)
        return ort_error_set(err, refused, "%.500s", why.message);
    if (refused) {
        snprintf(r->text, 600, "at twice the size the model doesn't run: %.500s", why.message);
        return ORT_OK;
    }
    for (int i = 0; i < r->b->output_count && r->first_axis && !*r->text; i++)
        ORT_TRY(compare_output(r, i, err));
    return ORT_OK;
}

static ort_status run_sizes(const ort_session *a, const ort_session *b,
                            const ort_verify_options *options, int trial, char *text,
                            ort_error *err)
{
    double_run r = {.a = a, .b = b, .options = options, .first_axis = true, .text = text};
    *text = '\0';
    ort_status status = allocate(&r) ? run(&r, trial, err)
                                     : ort_error_memory(err, sizeof *r.joined);
    for (int s = 0; s < 2; s++) {
        free_values(r.sets[s], a->input_count);
        free_values(r.out[s], a->output_count);
    }
    free_values(r.joined, b->input_count);
    free_values(r.out_joined, b->output_count);
    return status;
}

ort_status ort_verify_opened(const ort_session *a, const ort_session *b,
                             const ort_verify_options *options, char *text, ort_error *err)
{
    ort_status status = run_sizes(a, b, options, 0, text, err);
    for (int trial = 1; status != ORT_OK && trial < ort_sizes_trials(a); trial++)
        if (!run_sizes(a, b, options, trial, text, NULL))
            return ORT_OK;
    return status;
}
