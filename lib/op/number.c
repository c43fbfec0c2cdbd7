/* number.c - reading inputs that are one number (number.h). */
#include "op/number.h"

#include "base/error.h"
#include "op/rule.h"

/* The input's name in the operator's signature, "" where the row doesn't say. */
static void name_of(const ort_op *op, int input, char name[64])
{
    ort_schema schema;
    *name = 0;
    if (!op || ort_schema_parse(op, &schema, NULL))
        return;
    const ort_param *param = ort_schema_param(schema.inputs, schema.input_count, input);
    if (param)
        snprintf(name, 64, "%s", param->name);
}

static ort_status refuse(const ort_op *op, int input, const char *what, ort_status status,
                         ort_error *err)
{
    char name[64];
    name_of(op, input, name);
    return ort_error_set(err, status, "input %d%s%s%s %s; one number is needed", input,
                         *name ? " (" : "", name, *name ? ")" : "", what);
}

static ort_status need_one(const ort_call *call, int input, bool *there, ort_error *err)
{
    char shape[200], what[240];
    const ort_value *value = input >= 0 && input < call->in_count ? call->in[input] : NULL;
    *there = value != NULL;
    if (!value || (value->kind == ORT_KIND_TENSOR && ort_tensor_is_one(&value->tensor)))
        return ORT_OK;
    if (value->kind != ORT_KIND_TENSOR)
        snprintf(what, sizeof what, "is no tensor");
    else
        snprintf(what, sizeof what, "is %s[%s]", ort_dtype_name(value->tensor.dtype),
                 ort_shape_list(&value->tensor.shape, shape, sizeof shape));
    return refuse(call->node ? call->node->op : NULL, input, what, ORT_ERROR_RUN, err);
}

ort_status ort_call_i64(const ort_call *call, int input, int64_t *number, ort_error *err)
{
    bool there;
    ORT_TRY(need_one(call, input, &there, err));
    if (there)
        ort_tensor_one_i64(&call->in[input]->tensor, number);
    return ORT_OK;
}

ort_status ort_call_f64(const ort_call *call, int input, double *number, ort_error *err)
{
    bool there;
    ORT_TRY(need_one(call, input, &there, err));
    if (there)
        ort_tensor_one_f64(&call->in[input]->tensor, number);
    return ORT_OK;
}

ort_status ort_call_f32(const ort_call *call, int input, float *number, ort_error *err)
{
    double wide = (double)*number;
    ORT_TRY(ort_call_f64(call, input, &wide, err));
    *number = (float)wide;
    return ORT_OK;
}

ort_status ort_call_need_numbers(const ort_call *call, const int *inputs, int count,
                                 ort_error *err)
{
    bool there;
    for (int i = 0; i < count; i++)
        ORT_TRY(need_one(call, inputs[i], &there, err));
    return ORT_OK;
}

/* ---- inference */

/* Known to have another number of elements than one? */
static bool known_not_one(const ort_type *type)
{
    bool all = true, other = false;
    for (int d = 0; d < type->rank; d++) {
        all = all && ort_dim_known(type->dim[d]);
        other = other || (ort_dim_known(type->dim[d]) && type->dim[d].size != 1);
        if (ort_dim_known(type->dim[d]) && type->dim[d].size == 0)
            return true;
    }
    return all && other;
}

ort_status ort_op_infer(ort_infer *x, ort_error *err)
{
    const ort_op_impl *impl = x->op->impl;
    char text[300], what[320];
    for (int i = 0; impl->numbers >> i && i < x->in_count; i++) {
        if (!(impl->numbers >> i & 1u) || !ort_infer_in_ranked(x, i) ||
            !known_not_one(&x->in[i]->type))
            continue;
        snprintf(what, sizeof what, "is %s",
                 ort_type_format(x->dims, &x->in[i]->type, text, sizeof text));
        return refuse(x->op, i, what, ORT_ERROR_MODEL, err);
    }
    ort_infer_signature(x);
    if (impl->rule)
        ORT_TRY(ort_infer_rule(x, impl->rule, err));
    return impl->infer ? impl->infer(x, err) : ORT_OK;
}
