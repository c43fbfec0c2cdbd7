/* attention_keys.c - masks that say of each key whether it counts, for all heads and queries alike:
 *
 *     (1 - Cast(Unsqueeze(keys))) * low       Where(Equal(keys, 0), low, zeros)       and so on
 *
 * where keys is [B,T], of conditions or of integers that are 1 or 0. Operators of com.microsoft
 * take keys itself, as int32, and the low number as mask_filter_value. How a mask is spelled
 * doesn't matter: it is computed for a key that counts and for one that doesn't. Integers are
 * compared with 0 alone, and before anything is computed of them, so that numbers of tokens aren't
 * mistaken for a mask, unless it is one: ids == 0.
 */
#include <math.h>

#include "pass/attention/attention_match.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "tensor/scalar.h"

enum { DEPTH = 24 };

typedef struct reading {
    const ort_graph *graph;
    ort_dim B, T;
    ort_id keys;   /* found so far, or ORT_ID_NONE */
    int64_t heads; /* that may be folded into the batch; or 0 */
    ort_dim folded; /* B times heads */
} reading;

typedef struct seen { /* a value, as far as one key is concerned */
    double at[2];     /* where keys is 0, and where it isn't */
    bool varies;      /* with keys; it is [B,1 or more,T] then */
    bool raw;         /* keys itself, of integers or as floats */
    bool loose;       /* computed of keys of integers: true of 0 and 1 alone */
} seen;

static bool read_value(reading *r, ort_id id, seen *s, int depth);

static const ort_type *type_of(const reading *r, ort_id id)
{
    return ort_fact_type(r->graph, id);
}

static bool is_one(ort_dim dim)
{
    return ort_dim_is(dim, 1);
}

/* [B*H,1,T] */
static bool is_folded(const reading *r, ort_id id)
{
    const ort_type *type = type_of(r, id);
    return r->heads && ort_fact_ranked(r->graph, id, 3) && is_one(type->dim[1]) &&
           ort_dim_equal(type->dim[0], r->folded) && ort_dim_equal(type->dim[2], r->T);
}

/* [B,...,T] */
static bool is_placed(const reading *r, ort_id id)
{
    const ort_type *type = type_of(r, id);
    return is_folded(r, id) ||
           (type->kind == ORT_TYPE_TENSOR && type->rank >= 2 &&
            ort_dim_equal(type->dim[0], r->B) && ort_dim_equal(type->dim[type->rank - 1], r->T));
}

/* [B,1,1,T], which has the elements of [B,T] in their order. */
static bool is_thin(const reading *r, ort_id id)
{
    const ort_type *type = type_of(r, id);
    for (int d = 1; is_placed(r, id) && d < type->rank - 1; d++)
        if (!is_one(type->dim[d]))
            return false;
    return is_placed(r, id);
}

static bool is_integer(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_INT32 || dtype == ORT_DTYPE_INT64;
}

static bool read_keys(reading *r, ort_id id, seen *s)
{
    const ort_type *type = type_of(r, id);
    if (type->rank != 2 || !is_placed(r, id) || (r->keys != ORT_ID_NONE && r->keys != id) ||
        (!is_integer(type->dtype) && type->dtype != ORT_DTYPE_BOOL))
        return false;
    r->keys = id;
    *s = (seen){{0, 1}, true, is_integer(type->dtype), false};
    return true;
}

static bool read_constant(const reading *r, ort_id id, seen *s)
{
    const ort_graph_value *value = r->graph->values.data[id];
    const ort_tensor *t = value->is_input ? NULL : value->fact.value;
    const ort_node *node = ort_edit_producer(r->graph, id);
    if (ort_edit_is(node, ONNX, "ConstantOfShape")) {
        const ort_attr *attr = ort_node_attr(node, "value");
        *s = (seen){{0, 0}, false, false, false};
        t = attr && attr->type == ORT_ATTR_TENSOR ? attr->t : NULL;
        if (!t)
            return true;
    }
    if (!t || !t->data || t->dtype == ORT_DTYPE_STRING || ort_tensor_count(t) < 1)
        return false;
    double number = ort_tensor_get_f64(t, 0); /* first of several: counted above */
    *s = (seen){{number, number}, false, false, false};
    return ort_constant_is_all(t, number);
}

static bool read_cast(reading *r, const ort_node *node, seen *s, int depth)
{
    ort_dtype to = type_of(r, node->outputs[0])->dtype;
    if (!read_value(r, node->inputs[0], s, depth))
        return false;
    s->loose = s->loose && to != ORT_DTYPE_BOOL;
    s->raw = s->raw && to != ORT_DTYPE_BOOL;
    if (is_integer(to))
        return s->at[0] == trunc(s->at[0]) && s->at[1] == trunc(s->at[1]);
    for (int i = 0; i < 2 && to == ORT_DTYPE_BOOL; i++)
        s->at[i] = s->at[i] != 0;
    return to == ORT_DTYPE_BOOL || to == ORT_DTYPE_FLOAT;
}

/* [B,H,1,T] to [B*H,1,T] */
static bool folds(const reading *r, const ort_node *node)
{
    const ort_type *in = type_of(r, node->inputs[0]);
    return is_folded(r, node->outputs[0]) && is_placed(r, node->inputs[0]) && in->rank == 4 &&
           ort_dim_known(in->dim[1]) && in->dim[1].size == r->heads && is_one(in->dim[2]);
}

static bool moves(const reading *r, const ort_node *node)
{
    if (ort_edit_is(node, ONNX, "Expand"))
        return type_of(r, node->inputs[0])->rank == type_of(r, node->outputs[0])->rank ||
               !is_placed(r, node->inputs[0]);
    return ort_edit_is(node, ONNX, "Unsqueeze") || ort_edit_is(node, ONNX, "Squeeze") ||
           (ort_edit_is(node, ONNX, "Reshape") &&
            (!is_placed(r, node->inputs[0]) || folds(r, node) ||
             (is_thin(r, node->inputs[0]) && is_thin(r, node->outputs[0]))));
}

/* ---- arithmetic */

static double combine(int op, double a, double b)
{
    switch (op) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a / b;
    case 4: return a != 0 && b != 0;
    case 5: return a != 0 || b != 0;
    case 6: return a == b;
    case 7: return a > b;
    case 8: return a < b;
    case 9: return a >= b;
    default: return a <= b;
    }
}

/* Which of `combine`, or -1. */
static int operator_of(const ort_node *node)
{
    static const char *const names[] = {"Add", "Sub", "Mul", "Div", "And", "Or", "Equal", "Greater",
                                        "Less", "GreaterOrEqual", "LessOrEqual"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (ort_edit_is(node, ONNX, names[i]))
            return node->opset >= 7 ? i : -1;
    return -1;
}

/* Is what the comparison says of 1 true of all positive integers? */
static bool is_about_zero(int op, const seen *a, const seen *b)
{
    const seen *other = a->raw ? b : a;
    int greater = a->raw ? 7 : 8;
    return a->raw != b->raw && !other->varies && other->at[0] == 0 && (op == 6 || op == greater);
}

/* A value that varies has all dims of the result, so that its axes are the result's. */
static bool is_whole(const reading *r, const ort_node *node, int slot, const seen *s)
{
    return !s->varies ||
           type_of(r, node->inputs[slot])->rank == type_of(r, node->outputs[0])->rank;
}

static bool read_two(reading *r, const ort_node *node, int op, seen *s, int depth)
{
    seen a, b;
    if (!read_value(r, node->inputs[0], &a, depth) || !read_value(r, node->inputs[1], &b, depth) ||
        !is_whole(r, node, 0, &a) || !is_whole(r, node, 1, &b))
        return false;
    bool compares = op >= 6;
    if (compares && (a.loose || b.loose || ((a.raw || b.raw) && !is_about_zero(op, &a, &b))))
        return false;
    for (int i = 0; i < 2; i++)
        s->at[i] = combine(op, a.at[i], b.at[i]);
    s->varies = a.varies || b.varies;
    s->loose = !compares && (a.raw || b.raw || a.loose || b.loose);
    s->raw = false;
    return !isnan(s->at[0]) && !isnan(s->at[1]);
}

static bool read_choice(reading *r, const ort_node *node, seen *s, int depth)
{
    seen part[3];
    for (int i = 0; i < 3; i++)
        if (!read_value(r, node->inputs[i], &part[i], depth) || !is_whole(r, node, i, &part[i]))
            return false;
    for (int i = 0; i < 2; i++)
        s->at[i] = part[0].at[i] != 0 ? part[1].at[i] : part[2].at[i];
    s->varies = part[0].varies || part[1].varies || part[2].varies;
    s->loose = part[1].raw || part[2].raw || part[1].loose || part[2].loose;
    s->raw = false;
    return true;
}

static bool read_node(reading *r, const ort_node *node, seen *s, int depth)
{
    int op = operator_of(node);
    if (op >= 0)
        return read_two(r, node, op, s, depth);
    if (ort_edit_is(node, ONNX, "Where"))
        return read_choice(r, node, s, depth);
    if (ort_edit_is(node, ONNX, "Cast"))
        return read_cast(r, node, s, depth);
    if (moves(r, node))
        return read_value(r, node->inputs[0], s, depth);
    if (!ort_edit_is(node, ONNX, "Not") || !read_value(r, node->inputs[0], s, depth))
        return false;
    s->at[0] = s->at[0] == 0;
    s->at[1] = s->at[1] == 0;
    return true;
}

static bool read_value(reading *r, ort_id id, seen *s, int depth)
{
    const ort_node *node = ort_edit_producer(r->graph, id);
    ort_id before = r->keys;
    if (depth > DEPTH)
        return false;
    if (read_constant(r, id, s))
        return true;
    if (node && read_node(r, node, s, depth + 1) && (!s->varies || is_placed(r, id)))
        return true;
    r->keys = before;
    return read_keys(r, id, s);
}

/* Is `id`, of as many dims as the scores or folded, made of keys? */
static bool reads_keys(const ort_graph *graph, const ort_attention *a, ort_id id, seen *s,
                       ort_id *keys)
{
    reading r = {.graph = graph, .B = ort_attention_queries(graph, a).dim[0], .T = a->T,
                 .keys = ORT_ID_NONE};
    if (a->steps) {
        r.heads = a->q_heads;
        r.folded = ort_dim_mul(graph->model->dims, r.B, ort_dim_of(r.heads));
    }
    bool found = read_value(&r, id, s, 0) && s->varies &&
                 (type_of(&r, id)->rank == 4 || is_folded(&r, id));
    *keys = r.keys;
    return found;
}

/* Is `id`, summed onto the scores, made of keys, and 0 for those that count? */
static bool reads_sum(const ort_graph *graph, const ort_attention *a, ort_id id,
                      ort_attention_keys *taken)
{
    seen s;
    ort_id keys;
    if (!reads_keys(graph, a, id, &s, &keys))
        return false;
    bool inverted = s.at[0] == 0;
    *taken = (ort_attention_keys){keys, inverted, s.at[inverted ? 1 : 0]};
    return s.at[inverted ? 0 : 1] == 0 && taken->low < 0;
}

/* Mask i, or one of the two that it is the sum of. */
static bool take_mask(const ort_graph *graph, const ort_attention *a, ort_attention_terms *t, int i)
{
    if (reads_sum(graph, a, t->masks[i], &t->keys)) {
        t->masks[i] = t->masks[--t->mask_count];
        return true;
    }
    const ort_node *add = ort_edit_producer(graph, t->masks[i]);
    if (a->steps || !ort_edit_is(add, ONNX, "Add") || add->opset < 7)
        return false;
    for (int slot = 0; slot < 2; slot++)
        if (ort_attention_is_mask(graph, a, add->inputs[1 - slot]) &&
            reads_sum(graph, a, add->inputs[slot], &t->keys)) {
            t->masks[i] = add->inputs[1 - slot];
            return true;
        }
    return false;
}

static bool take_condition(const ort_graph *graph, const ort_attention *a, ort_attention_terms *t)
{
    seen s;
    ort_id keys;
    double filled;
    if (!ort_tensor_one_f64(graph->values.data[t->fill]->fact.value, &filled) ||
        !reads_keys(graph, a, t->keep, &s, &keys) || s.at[0] == s.at[1])
        return false;
    t->keys = (ort_attention_keys){keys, (s.at[0] != 0) != t->keep_is_inverse, filled};
    t->keep = ORT_ID_NONE;
    return true;
}

ort_attention_terms ort_attention_take_keys(const ort_pass_context *c, const ort_attention *a)
{
    ort_attention_terms t = a->terms;
    bool together = a->q_heads && !a->steps && !a->row, condition = t.keep != ORT_ID_NONE;
    if (t.keys.id != ORT_ID_NONE || t.zeroed || together || (condition && t.mask_count))
        return t; /* a condition and masks have an order */
    bool taken = condition && take_condition(c->graph, a, &t);
    for (int i = 0; i < t.mask_count && !taken; i++)
        taken = take_mask(c->graph, a, &t, i);
    if (!taken)
        t.keys.id = ORT_ID_NONE;
    return t;
}

/* ---- writing */

void ort_attention_lower_keys(ort_emit *e, ort_attention *a)
{
    static const int64_t middle[2] = {1, 2};
    ort_attention_keys *keys = &a->terms.keys;
    ort_id counts = ort_emit_cast(e, keys->id, ORT_DTYPE_BOOL);
    ort_id zero = ort_emit_number(e, a->q, 0), low = ort_emit_number(e, a->q, keys->low);
    ort_id mask = ort_emit_op3(e, "Where", counts, keys->inverted ? low : zero,
                               keys->inverted ? zero : low);
    a->terms.masks[a->terms.mask_count++] = ort_emit_unsqueeze(e, mask, middle, 2);
    keys->id = ORT_ID_NONE;
}

ort_id ort_attention_write_keys(ort_emit *e, const ort_attention_keys *keys)
{
    ort_id id = keys->id;
    if (id == ORT_ID_NONE)
        return id;
    if (keys->inverted && ort_emit_type(e, id)->dtype == ORT_DTYPE_BOOL)
        id = ort_emit_op1(e, "Not", id);
    else if (keys->inverted)
        id = ort_emit_op2(e, "Equal", id, ort_emit_number(e, id, 0));
    return ort_emit_cast(e, id, ORT_DTYPE_INT32);
}
