/* code_chain.c - CodeChain: elementwise operators between codes, tile by tile: the codes of a tile
 * become numbers, go through the steps of chain.h, and become codes. Only codes pass through
 * memory, and they are those that DequantizeLinear, the operators and QuantizeLinear give. For
 * codes that no table of 256 holds.
 */
#include <string.h>

#include "base/checked.h"
#include "op/shared/chain.h"
#include "op/shared/codes.h"
#include "op/shared/unary_apply.h"

enum { TILE = 2048 };

typedef struct code_chain_state {
    ort_ints program, zeros;   /* zeros, scales: of each input */
    ort_floats params, scales;
    int64_t to, y_zero;        /* to: an element type */
    float y_scale;
    int count;
    ort_chain_step steps[ORT_CHAIN_STEPS];
} code_chain_state;

static const ort_bind code_bind[] = {
    ORT_BIND(code_chain_state, program), ORT_BIND(code_chain_state, params),
    ORT_BIND(code_chain_state, scales), ORT_BIND(code_chain_state, zeros),
    ORT_BIND(code_chain_state, to), ORT_BIND(code_chain_state, y_scale),
    ORT_BIND(code_chain_state, y_zero), {0}};

static ort_status code_infer(ort_infer *x, ort_error *err)
{
    ort_infer_set_dtype(x, 0, (ort_dtype)ort_node_attr_int(x->node, "to"));
    if (ort_infer_in_ranked(x, 0))
        ort_infer_set_shape(x, 0, x->in[0]->type.rank, x->in[0]->type.dim);
    return ORT_OK;
}

static ort_status code_prepare(ort_prep *p, ort_error *err)
{
    code_chain_state *s = p->state;
    if (s->scales.count != (size_t)p->in_count || s->zeros.count != (size_t)p->in_count)
        return ort_prep_fail(p, err, "it has %zu scales and %zu zero points for %d inputs",
                             s->scales.count, s->zeros.count, p->in_count);
    if (ort_prep_dtype(p, 0) == ORT_DTYPE_FLOAT)
        return ort_prep_unsupported_dtype(p, 0, err);
    return ort_chain_read(p, &s->program, &s->params, s->steps, &s->count, err);
}

/* Does an operand repeat along the last axes of the result? One number does. */
static bool repeats(const ort_shape *x, const ort_shape *y)
{
    int ones = 0;
    while (ones < x->rank && x->dim[ones] == 1)
        ones++;
    for (int d = x->rank - 1; d >= ones; d--)
        if (y->rank - (x->rank - d) < 0 || x->dim[d] != y->dim[y->rank - (x->rank - d)])
            return false;
    return true;
}

static ort_status code_shape(ort_shaping *sh, ort_error *err)
{
    const ort_shape *y = &sh->out[0]->shape;
    for (int i = 0; i < sh->in_count; i++)
        if (i ? !repeats(&sh->in[i]->shape, y) : !ort_shape_equal(&sh->in[i]->shape, y))
            return ort_error_set(err, ORT_ERROR_MODEL,
                                 "input %d doesn't repeat along the last axes of the result", i);
    return ORT_OK;
}

typedef struct code_job {
    const ort_call *call;
    const code_chain_state *s;
    ort_tensor *y;
} code_job;

/* The numbers of n elements of an input from `first` on, which don't go beyond its end. */
static void take(const code_job *j, int input, int64_t first, int64_t n, float *to)
{
    const ort_tensor *x = ort_call_in(j->call, input);
    const size_t width = (size_t)ort_dtype_get(x->dtype)->bits / 8;
    const char *from = (const char *)x->data + (size_t)first * width;
    if (x->dtype == ORT_DTYPE_FLOAT)
        memcpy(to, from, (size_t)n * width);
    else
        ort_codes_take(j->call->k, x->dtype, j->s->scales.ptr[input], (int)j->s->zeros.ptr[input],
                       from, to, n);
}

/* Those of an operand beside elements [first, first + n) of the result. */
static void take_operand(const code_job *j, int input, int64_t first, int64_t n, float *to)
{
    const int64_t count = ort_tensor_count(ort_call_in(j->call, input));
    for (int64_t done = 0, some; done < n; done += some) {
        const int64_t at = (first + done) % count;
        some = ort_min_i64(n - done, count - at);
        take(j, input, at, some, to + done);
    }
}

static void run_step(const code_job *j, const ort_chain_step *step, int64_t first, int64_t n,
                     float *tile, float *space)
{
    if (step->unary) {
        step->unary(tile, tile, (size_t)n, step->a, step->b);
        return;
    }
    const bool one = ort_tensor_count(ort_call_in(j->call, step->input)) == 1;
    take_operand(j, step->input, first, one ? 1 : n, space);
    if (step->right)
        step->binary(space, tile, tile, (size_t)n, one ? ORT_FORM_SV : ORT_FORM_VV);
    else
        step->binary(tile, space, tile, (size_t)n, one ? ORT_FORM_VS : ORT_FORM_VV);
}

static void task_codes(void *arg, int64_t first, int64_t end, int thread)
{
    const code_job *j = arg;
    const size_t width = (size_t)ort_dtype_get(j->y->dtype)->bits / 8;
    float tile[TILE], space[TILE];
    for (; first < end; first += TILE) {
        const int64_t n = ort_min_i64(TILE, end - first);
        take(j, 0, first, n, tile);
        for (int i = 0; i < j->s->count; i++)
            run_step(j, &j->s->steps[i], first, n, tile, space);
        ort_codes_give(j->call->k, j->y->dtype, j->s->y_scale, (int)j->s->y_zero, tile,
                       (char *)j->y->data + (size_t)first * width, n);
    }
}

static ort_status code_run(ort_call *call, ort_error *err)
{
    code_job j = {call, call->state, ort_call_out(call, 0)};
    ort_call_range(call, ort_tensor_count(j.y), ORT_ELEMENTWISE_GRAIN, task_codes, &j);
    return ORT_OK;
}

static void code_cost(const ort_infer *x, ort_cost *cost)
{
    size_t words = 0;
    ort_node_ints(x->node, "program", &words);
    ort_elementwise_cost(x, cost);
    cost->flops *= (double)(words / 2 + 2);
}

static const ort_op_impl code_impl = {
    .state = sizeof(code_chain_state), .bind = code_bind, .infer = code_infer,
    .prepare = code_prepare, .shape = code_shape, .run = code_run, .cost = code_cost,
};

const ort_op ort_ops_code_chain[] = {
    {ORT_INTERNAL, "CodeChain", 1, "inputs**:T1 -> y:T2",
     "T1:f32,i8,u8,i16,u16 T2:i8,u8,i16,u16",
     "params:fs! program:is! scales:fs! to:i! y_scale:f! y_zero:i! zeros:is!",
     ORT_TRAIT_ELEMENTWISE, &code_impl},
    {0},
};
