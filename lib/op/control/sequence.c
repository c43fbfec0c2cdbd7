/* sequence.c - sequences and optionals of values.
 *
 * A sequence holds references; inserting or erasing makes a new sequence that shares the items. An
 * optional has no wrapper at run time: it is its element, or a value of kind NONE.
 */
#include <stdlib.h>
#include <string.h>

#include "op/flow.h"
#include "op/number.h"
#include "tensor/scalar.h"

#define DYNAMIC ORT_TRAIT_DYNAMIC

/* ---- infer */

static ort_status empty_infer(ort_infer *x, ort_error *err)
{
    int64_t dtype = ort_node_int(x->node, "dtype", ORT_DTYPE_FLOAT);
    bool typed = !ort_node_has(x->node, "dtype") ||
                 ort_node_attr(x->node, "dtype")->type == ORT_ATTR_INT;
    if (!typed || dtype <= 0 || dtype >= ORT_DTYPE_COUNT)
        return ort_infer_fail(x, err, "dtype is %lld, needs a number of TensorProto.DataType",
                              typed ? (long long)dtype : 0);
    ort_type item = ort_type_tensor((ort_dtype)dtype, -1, NULL);
    x->out[0].type = ort_flow_type_of(x->arena, ORT_TYPE_SEQUENCE, &item);
    return ORT_OK;
}

static ort_status construct_infer(ort_infer *x, ort_error *err)
{
    if (x->in_count == 0 || !x->in[0])
        return ORT_OK;
    ort_type item = x->in[0]->type;
    for (int i = 1; i < x->in_count; i++)
        if (x->in[i])
            ort_flow_join_type(x->arena, &item, &x->in[i]->type);
    x->out[0].type = ort_flow_type_of(x->arena, ORT_TYPE_SEQUENCE, &item);
    return ORT_OK;
}

/* Element type of sequence (or optional) input 0; NULL when not known. */
static const ort_type *element_of(const ort_infer *x, ort_type_kind kind)
{
    const ort_fact *in = ort_infer_in(x, 0);
    return in && in->type.kind == kind ? in->type.element : NULL;
}

static ort_status insert_infer(ort_infer *x, ort_error *err)
{
    const ort_type *element = element_of(x, ORT_TYPE_SEQUENCE);
    const ort_fact *tensor = ort_infer_in(x, 1);
    ort_type item = {.rank = -1};
    if (element)
        item = *element;
    if (element && tensor)
        ort_flow_join_type(x->arena, &item, &tensor->type);
    x->out[0].type = ort_flow_type_of(x->arena, ORT_TYPE_SEQUENCE, &item);
    return ORT_OK;
}

static ort_status at_infer(ort_infer *x, ort_error *err)
{
    const ort_type *element = element_of(x, ORT_TYPE_SEQUENCE);
    if (element)
        x->out[0].type = *element;
    return ORT_OK;
}

/* The length of every part, where all are equal. */
static ort_dim split_length(const ort_infer *x, ort_dim total)
{
    ort_dim first, part;
    if (!ort_infer_in(x, 1))
        return ort_dim_of(1);
    int count = ort_infer_int_count(x, 1);
    if (count < 1 || !ort_infer_in_ranked(x, 1) || !ort_infer_int(x, 1, 0, &first))
        return ort_dim_unknown();
    if (x->in[1]->type.rank == 0) /* cut into parts of this length; a rest is shorter */
        return ort_dim_known(first) && ort_dim_known(total) && first.size > 0 &&
                       total.size % first.size == 0 ? first : ort_dim_unknown();
    for (int i = 1; i < count; i++)
        if (!ort_infer_int(x, 1, i, &part) || !ort_dim_equal(part, first))
            return ort_dim_unknown();
    return first;
}

static ort_status split_infer(ort_infer *x, ort_error *err)
{
    const ort_fact *in = ort_infer_in(x, 0);
    bool keepdims = ort_node_attr_int(x->node, "keepdims") != 0 || ort_infer_in(x, 1);
    ort_type item = {.rank = -1};
    if (in)
        item = in->type;
    if (ort_infer_in_ranked(x, 0)) {
        int axis;
        ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), item.rank, &axis, err));
        bool none = ort_dim_known(item.dim[axis]) && item.dim[axis].size == 0;
        const ort_fact *split = ort_infer_in(x, 1);
        /* No parts of no elements: others take such a split from a run, no constant one. */
        if (split && (!none || split->value) && ort_infer_int_count(x, 1) == 0)
            return ort_infer_fail(x, err, "split is empty: its lengths don't add up to those of "
                                          "dimension %d", axis);
        if (keepdims) {
            item.dim[axis] = split_length(x, item.dim[axis]);
        } else {
            memmove(&item.dim[axis], &item.dim[axis + 1],
                    (size_t)(item.rank - axis - 1) * sizeof *item.dim);
            item.rank--;
        }
    }
    x->out[0].type = ort_flow_type_of(x->arena, ORT_TYPE_SEQUENCE, &item);
    return ORT_OK;
}

static ort_status concat_infer(ort_infer *x, ort_error *err)
{
    const ort_type *element = element_of(x, ORT_TYPE_SEQUENCE);
    bool new_axis = ort_node_attr_int(x->node, "new_axis") != 0;
    int axis = 0;
    if (!element || element->kind != ORT_TYPE_TENSOR)
        return ORT_OK;
    ort_type type = *element;
    if (type.rank >= 0) {
        int rank = type.rank + (new_axis ? 1 : 0);
        ORT_TRY(ort_infer_axis(x, ort_node_attr_int(x->node, "axis"), rank, &axis, err));
        if (new_axis && rank > ORT_MAX_RANK)
            return ort_infer_fail(x, err, "the result has more than %d dims", ORT_MAX_RANK);
        if (new_axis)
            memmove(&type.dim[axis + 1], &type.dim[axis],
                    (size_t)(type.rank - axis) * sizeof *type.dim);
        type.rank = rank;
        type.dim[axis] = ort_dim_unknown();
    }
    x->out[0].type = type;
    return ORT_OK;
}

static ort_status optional_infer(ort_infer *x, ort_error *err)
{
    const ort_fact *in = ort_infer_in(x, 0);
    const ort_attr *type = ort_node_attr(x->node, "type");
    if (in)
        x->out[0].type = ort_flow_type_of(x->arena, ORT_TYPE_OPTIONAL, &in->type);
    else if (type && type->type_proto)
        x->out[0].type = ort_flow_type_of(x->arena, ORT_TYPE_OPTIONAL, type->type_proto);
    return ORT_OK;
}

static ort_status get_infer(ort_infer *x, ort_error *err)
{
    const ort_type *element = element_of(x, ORT_TYPE_OPTIONAL);
    const ort_fact *in = ort_infer_in(x, 0);
    if (element)
        x->out[0].type = *element;
    else if (in && in->type.kind != ORT_TYPE_OPTIONAL)
        x->out[0].type = in->type;
    return ORT_OK;
}

/* ---- run */

static ort_status need_sequence(const ort_call *call, const ort_value **sequence, ort_error *err)
{
    *sequence = call->in_count > 0 ? call->in[0] : NULL;
    if (!*sequence || (*sequence)->kind != ORT_KIND_SEQUENCE)
        return ort_call_fail(call, err, "input 0 must be a sequence");
    return ORT_OK;
}

/* Position input into [0, limit); the fallback when it is absent. */
static ort_status position(const ort_call *call, int input, int64_t count, int64_t limit,
                           int64_t fallback, int64_t *out, ort_error *err)
{
    int64_t at = fallback;
    if (ort_call_in(call, input)) {
        ORT_TRY(ort_call_i64(call, input, &at, err));
        if (at < 0)
            at += count;
    }
    if (at < 0 || at >= limit)
        return ort_call_fail(call, err, "position %lld is outside a sequence of %lld items",
                             (long long)at, (long long)count);
    *out = at;
    return ORT_OK;
}

static ort_status append_kept(ort_value *sequence, ort_value *item, ort_error *err)
{
    ort_value *kept = NULL;
    ORT_TRY(ort_flow_keep(item, &kept, err));
    if (kept->kind == ORT_KIND_TENSOR && sequence->item_dtype == ORT_DTYPE_UNDEFINED)
        sequence->item_dtype = kept->tensor.dtype;
    return ort_value_append_take(sequence, kept, err);
}

typedef struct empty_state {
    int64_t dtype;
} empty_state;

static const ort_bind empty_bind[] = {
    ORT_BIND(empty_state, dtype, ORT_ELSE(ORT_DTYPE_FLOAT)), {0}};

static ort_status empty_run(ort_call *call, ort_error *err)
{
    const empty_state *s = call->state;
    ort_value *sequence = NULL;
    ORT_TRY(ort_value_new_sequence_(&sequence, err));
    sequence->item_dtype = (ort_dtype)s->dtype;
    ort_call_set_output(call, 0, sequence);
    return ORT_OK;
}

static ort_status construct_run(ort_call *call, ort_error *err)
{
    ort_value *sequence = NULL;
    ORT_TRY(ort_value_new_sequence_(&sequence, err));
    for (int i = 0; i < call->in_count; i++) {
        ort_status status = call->in[i] ? append_kept(sequence, call->in[i], err)
                                        : ort_call_fail(call, err, "input %d is missing", i);
        if (status != ORT_OK) {
            ort_value_free(sequence);
            return status;
        }
    }
    ort_call_set_output(call, 0, sequence);
    return ORT_OK;
}

/* A new sequence: the items of `old` except number `skip`, with `extra` in front of number
 * `before` (or last). */
static ort_status rebuild(ort_call *call, const ort_value *old, int64_t skip, int64_t before,
                          ort_value *extra, ort_error *err)
{
    ort_value *sequence = NULL;
    ORT_TRY(ort_value_new_sequence_(&sequence, err));
    sequence->item_dtype = old->item_dtype;
    ort_status status = ORT_OK;
    for (size_t i = 0; status == ORT_OK && i <= old->count; i++) {
        if (extra && (int64_t)i == before)
            status = append_kept(sequence, extra, err);
        if (status == ORT_OK && i < old->count && (int64_t)i != skip)
            status = append_kept(sequence, old->items[i], err);
    }
    if (status != ORT_OK) {
        ort_value_free(sequence);
        return status;
    }
    ort_call_set_output(call, 0, sequence);
    return ORT_OK;
}

static ort_status insert_run(ort_call *call, ort_error *err)
{
    const ort_value *old;
    int64_t at = 0;
    ORT_TRY(need_sequence(call, &old, err));
    int64_t count = (int64_t)old->count;
    ORT_TRY(position(call, 2, count, count + 1, count, &at, err));
    if (!call->in[1])
        return ort_call_fail(call, err, "the item to insert is missing");
    return rebuild(call, old, -1, at, call->in[1], err);
}

static ort_status erase_run(ort_call *call, ort_error *err)
{
    const ort_value *old;
    int64_t at = 0;
    ORT_TRY(need_sequence(call, &old, err));
    int64_t count = (int64_t)old->count;
    ORT_TRY(position(call, 1, count, count, count - 1, &at, err));
    return rebuild(call, old, at, -1, NULL, err);
}

static ort_status at_run(ort_call *call, ort_error *err)
{
    const ort_value *sequence;
    int64_t at = 0;
    ORT_TRY(need_sequence(call, &sequence, err));
    int64_t count = (int64_t)sequence->count;
    ORT_TRY(position(call, 1, count, count, 0, &at, err));
    return ort_flow_set_output(call, 0, sequence->items[at], err);
}

static ort_status length_run(ort_call *call, ort_error *err)
{
    const ort_value *sequence;
    ORT_TRY(need_sequence(call, &sequence, err));
    ort_tensor *out = ort_call_out(call, 0);
    if (out)
        ort_tensor_set_i64(out, 0, (int64_t)sequence->count);
    return ORT_OK;
}

/* Append elements [first, first + extent) along `axis` of `in` to the sequence. */
static ort_status append_part(ort_value *sequence, const ort_tensor *in, int axis, int64_t first,
                              int64_t extent, bool squeeze, ort_error *err)
{
    ort_value *part = NULL;
    ort_shape shape = in->shape;
    int64_t outer = ort_shape_count_range(&shape, 0, axis);
    int64_t inner = ort_shape_count_range(&shape, axis + 1, shape.rank);
    int64_t whole = shape.dim[axis];
    shape.dim[axis] = extent;
    ORT_TRY(ort_value_new_tensor_(in->dtype, &shape, &part, err));
    for (int64_t o = 0; o < outer; o++)
        ort_flow_copy(&part->tensor, o * extent * inner, in, (o * whole + first) * inner,
                      extent * inner);
    if (squeeze) {
        ort_shape *s = &part->tensor.shape;
        memmove(&s->dim[axis], &s->dim[axis + 1], (size_t)(s->rank - axis - 1) * sizeof s->dim[0]);
        s->rank--;
    }
    return ort_value_append_take(sequence, part, err);
}

typedef struct split_state {
    int64_t axis;
    bool keepdims;
} split_state;

static const ort_bind split_bind[] = {
    ORT_BIND(split_state, axis), ORT_BIND(split_state, keepdims), {0}};

static ort_status split_parts(ort_call *call, ort_value *sequence, int axis, ort_error *err)
{
    const split_state *s = call->state;
    const ort_tensor *in = ort_call_in(call, 0), *split = ort_call_in(call, 1);
    int64_t whole = in->shape.dim[axis], first = 0;
    bool listed = split && split->shape.rank == 1;
    bool squeeze = !split && !s->keepdims;
    int64_t size = 1;
    if (!listed)
        ORT_TRY(ort_call_i64(call, 1, &size, err));
    int64_t parts = listed ? ort_tensor_count(split) : 0;
    ort_pace pace = {0};
    if (size <= 0)
        return ort_call_fail(call, err, "split is %lld, must be positive", (long long)size);
    for (int64_t i = 0; listed ? i < parts : first < whole; i++) {
        int64_t extent = listed ? ort_tensor_get_i64(split, i)
                                : size < whole - first ? size : whole - first;
        if (extent < 0 || extent > whole - first)
            return ort_call_fail(call, err, "split sizes don't add up to the axis' %lld elements",
                                 (long long)whole);
        if (ort_pace_over(&pace, 200))
            return ort_budget_check(err);
        ORT_TRY(append_part(sequence, in, axis, first, extent, squeeze, err));
        first += extent;
    }
    if (first != whole)
        return ort_call_fail(call, err, "split sizes add up to %lld, the axis has %lld elements",
                             (long long)first, (long long)whole);
    return ORT_OK;
}

static ort_status split_run(ort_call *call, ort_error *err)
{
    const ort_tensor *in = ort_call_in(call, 0);
    int64_t axis = ((const split_state *)call->state)->axis;
    ort_value *sequence = NULL;
    axis += axis < 0 ? in->shape.rank : 0;
    if (axis < 0 || axis >= in->shape.rank)
        return ort_call_fail(call, err, "axis is outside the %d dims of its input", in->shape.rank);
    ORT_TRY(ort_value_new_sequence_(&sequence, err));
    sequence->item_dtype = in->dtype;
    ort_status status = split_parts(call, sequence, (int)axis, err);
    if (status != ORT_OK) {
        ort_value_free(sequence);
        return status;
    }
    ort_call_set_output(call, 0, sequence);
    return ORT_OK;
}

typedef struct concat_state {
    int64_t axis;
    bool new_axis;
} concat_state;

static const ort_bind concat_bind[] = {
    ORT_BIND(concat_state, axis), ORT_BIND(concat_state, new_axis), {0}};

/* Shape of the result; items must agree on all but the joined axis. */
static ort_status concat_shape(ort_call *call, const ort_value *sequence, int *axis_out,
                               ort_shape *shape, ort_error *err)
{
    const concat_state *s = call->state;
    bool new_axis = s->new_axis;
    int64_t axis = s->axis, total = 0;
    const ort_tensor *first = &sequence->items[0]->tensor;
    int rank = first->shape.rank + (new_axis ? 1 : 0);
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || rank > ORT_MAX_RANK)
        return ort_call_fail(call, err, "axis is outside the %d dims of the result", rank);
    for (size_t i = 0; i < sequence->count; i++) {
        const ort_tensor *t = &sequence->items[i]->tensor;
        ort_shape have = t->shape;
        if (sequence->items[i]->kind != ORT_KIND_TENSOR || t->dtype != first->dtype ||
            have.rank != first->shape.rank)
            return ort_call_fail(call, err, "item %zu differs from item 0 in type or rank", i);
        total += new_axis ? 1 : have.dim[axis];
        if (!new_axis)
            have.dim[axis] = first->shape.dim[axis];
        if (!ort_shape_equal(&have, &first->shape))
            return ort_call_fail(call, err, "item %zu has another shape than item 0", i);
    }
    *shape = new_axis ? ort_flow_insert_dim(&first->shape, (int)axis, total) : first->shape;
    shape->dim[axis] = total;
    *axis_out = (int)axis;
    return ort_shape_check(shape, first->dtype, err);
}

static ort_status concat_run(ort_call *call, ort_error *err)
{
    const ort_value *sequence;
    ort_shape shape;
    int axis = 0;
    ORT_TRY(need_sequence(call, &sequence, err));
    if (sequence->count == 0 || sequence->items[0]->kind != ORT_KIND_TENSOR)
        return ort_call_fail(call, err, "an empty sequence can't be joined");
    ORT_TRY(concat_shape(call, sequence, &axis, &shape, err));
    ort_dtype dtype = sequence->items[0]->tensor.dtype;
    ORT_TRY(ort_call_output(call, 0, dtype, &shape, err));
    ort_tensor *out = ort_call_out(call, 0);
    if (!out)
        return ORT_OK;
    int64_t outer = ort_shape_count_range(&shape, 0, axis);
    int64_t row = ort_shape_count_range(&shape, axis, shape.rank), at = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        const ort_tensor *t = &sequence->items[i]->tensor;
        int64_t part = outer > 0 ? ort_tensor_count(t) / outer : 0;
        for (int64_t o = 0; o < outer; o++)
            ort_flow_copy(out, o * row + at, t, o * part, part);
        at += part;
    }
    return ort_flow_own_strings(call, out, err);
}

static ort_status optional_run(ort_call *call, ort_error *err)
{
    ort_value *none = NULL;
    if (call->in_count > 0 && call->in[0])
        return ort_flow_set_output(call, 0, call->in[0], err);
    ORT_TRY(ort_value_new_none(&none, err));
    ort_call_set_output(call, 0, none);
    return ORT_OK;
}

static ort_status has_run(ort_call *call, ort_error *err)
{
    bool has = call->in_count > 0 && call->in[0] && call->in[0]->kind != ORT_KIND_NONE;
    ort_tensor *out = ort_call_out(call, 0);
    if (out)
        ort_tensor_set_i64(out, 0, has);
    return ORT_OK;
}

static ort_status get_run(ort_call *call, ort_error *err)
{
    if (call->in_count < 1 || !call->in[0] || call->in[0]->kind == ORT_KIND_NONE)
        return ort_call_fail(call, err, "the optional holds no element; test it with "
                             "OptionalHasElement first");
    return ort_flow_set_output(call, 0, call->in[0], err);
}

static const ort_op_impl empty_impl = {
    .state = sizeof(empty_state), .bind = empty_bind, .infer = empty_infer, .run = empty_run,
};
static const ort_op_impl construct_impl = {.infer = construct_infer, .run = construct_run};
static const ort_op_impl insert_impl = {.infer = insert_infer, .run = insert_run};
static const ort_op_impl erase_impl = {.rule = "same", .run = erase_run};
static const ort_op_impl at_impl = {.infer = at_infer, .run = at_run};
static const ort_op_impl length_impl = {.rule = "-> []", .run = length_run};
static const ort_op_impl split_impl = {
    .state = sizeof(split_state), .bind = split_bind, .infer = split_infer, .run = split_run,
};
static const ort_op_impl concat_impl = {
    .state = sizeof(concat_state), .bind = concat_bind, .infer = concat_infer, .run = concat_run,
};
static const ort_op_impl optional_impl = {.infer = optional_infer, .run = optional_run};
static const ort_op_impl has_impl = {.rule = "-> []", .run = has_run};
static const ort_op_impl get_impl = {.infer = get_infer, .run = get_run};

/* ---- rows */

/* What opset 28 adds. */
#define LATER "F8,F6,Q4,Q2,bf16,f4e2m1,f8e8m0"
#define OPTIONAL_LATER "opt(" LATER ",seq(" LATER "))"

const ort_op ort_ops_sequence[] = {
    {ONNX, "SequenceEmpty", 11, " -> output:S",
     "S:seq(F,I,U,C,str,bool)",
     "dtype:i", DYNAMIC, &empty_impl},
    {ONNX, "SequenceConstruct", 11, "inputs*:T -> output_sequence:S",
     "T:F,I,U,C,str,bool S:seq(F,I,U,C,str,bool)",
     "", DYNAMIC, &construct_impl},
    {ONNX, "SequenceInsert", 11, "input_sequence:S,tensor:T,position?:I -> output_sequence:S",
     "T:F,I,U,C,str,bool S:seq(F,I,U,C,str,bool) I:i32,i64",
     "", DYNAMIC, &insert_impl},
    {ONNX, "SequenceErase", 11, "input_sequence:S,position?:I -> output_sequence:S",
     "S:seq(F,I,U,C,str,bool) I:i32,i64",
     "", DYNAMIC, &erase_impl},
    {ONNX, "SequenceAt", 11, "input_sequence:S,position:I -> tensor:T",
     "S:seq(F,I,U,C,str,bool) T:F,I,U,C,str,bool I:i32,i64",
     "", DYNAMIC, &at_impl},
    {ONNX, "SequenceLength", 11, "input_sequence:S -> length:I",
     "S:seq(F,I,U,C,str,bool) I:i64",
     "", 0, &length_impl},
    {ONNX, "SplitToSequence", 11, "input:T,split?:I -> output_sequence:S",
     "T:F,I,U,C,str,bool I:i32,i64 S:seq(F,I,U,C,str,bool)",
     "axis:i=0 keepdims:i=1", DYNAMIC, &split_impl, .history = "24:T+bf16 S+seq(bf16)"},
    {ONNX, "ConcatFromSequence", 11, "input_sequence:S -> concat_result:T",
     "S:seq(F,I,U,C,str,bool) T:F,I,U,C,str,bool",
     "axis:i! new_axis:i=0", DYNAMIC, &concat_impl},
    {ONNX, "Optional", 15, "input?:V -> output:O",
     "V:F,I,U,C,str,bool,seq(F,I,U,C,str,bool) O:opt(seq(F,I,U,C,str,bool)),opt(F,I,U,C,str,"
     "bool)",
     "type:tp", DYNAMIC, &optional_impl,
     .history = "28:V+" LATER ",seq(" LATER ") O+" OPTIONAL_LATER},
    {ONNX, "OptionalHasElement", 15, "input:O -> output:B",
     "O:opt(seq(F,I,U,C,str,bool)),opt(F,I,U,C,str,bool) B:bool",
     "", 0, &has_impl},
    {ONNX, "OptionalHasElement", 18, "input?:O -> output:B",
     "O:F,I,U,C,str,bool,opt(seq(F,I,U,C,str,bool)),opt(F,I,U,C,str,bool),seq(F,I,U,C,str,"
     "bool) B:bool",
     "", 0, &has_impl, .history = "28:O+" LATER ",seq(" LATER ")," OPTIONAL_LATER},
    {ONNX, "OptionalGetElement", 15, "input:O -> output:V",
     "O:opt(seq(F,I,U,C,str,bool)),opt(F,I,U,C,str,bool) V:F,I,U,C,str,bool,seq(F,I,U,C,str,"
     "bool)",
     "", DYNAMIC, &get_impl,
     .history = "18:O+F,I,U,C,str,bool,seq(F,I,U,C,str,bool) "
                "28:O+" LATER ",seq(" LATER ")," OPTIONAL_LATER " V+" LATER ",seq(" LATER ")"},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};
