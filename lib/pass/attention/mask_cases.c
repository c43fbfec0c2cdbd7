/* mask_cases.c - arithmetic on the two cases of a mask (mask_cases.h). */
#include "pass/attention/mask_cases.h"

#include <math.h>

#include "pass/facts/facts.h"
#include "tensor/scalar.h"

enum { DEPTH = 24 };

typedef ort_cases cases;
typedef ort_cases_reader reader;

/* ---- constants */

static bool is_all(const ort_tensor *t, double number)
{
    for (int64_t i = 1; i < ort_tensor_count(t); i++)
        if (ort_tensor_get_f64(t, i) != number)
            return false;
    return number == number;
}

/* Of numbers that are all the same. */
static bool read_constant(const reader *r, ort_id id, cases *s)
{
    const ort_tensor *t = ort_fact_constant(r->graph, id);
    const ort_node *node = ort_edit_producer(r->graph, id);
    *s = (cases){{0, 0}, false, false, false};
    if (ort_edit_is(node, ONNX, "ConstantOfShape")) {
        const ort_attr *value = ort_node_attr(node, "value");
        t = value && value->type == ORT_ATTR_TENSOR ? value->t : NULL;
        if (!t)
            return true;
    }
    if (!t || !t->data || t->dtype == ORT_DTYPE_STRING || ort_tensor_count(t) < 1 ||
        ort_dtype_get(t->dtype)->class_ == ORT_CLASS_COMPLEX)
        return false;
    s->at[0] = s->at[1] = ort_tensor_get_f64(t, 0); /* first of all, which are compared with it */
    return is_all(t, s->at[0]);
}

/* ---- operators */

/* Comparisons from Equal on. */
#define OPERATIONS(X)                                                                              \
    X(Add, a + b) X(Sub, a - b) X(Mul, a * b) X(Div, a / b) X(And, a && b) X(Or, a || b)           \
    X(Equal, a == b) X(Greater, a > b) X(Less, a < b)                                              \
    X(GreaterOrEqual, a >= b) X(LessOrEqual, a <= b)

#define NAMED(name, result) OF_##name,
enum { OPERATIONS(NAMED) OPERATION_COUNT };
#undef NAMED

static double combine(int op, double a, double b)
{
#define COMPUTED(name, result) case OF_##name: return result;
    switch (op) {
    OPERATIONS(COMPUTED)
    default: return NAN;
    }
#undef COMPUTED
}

/* Which of `combine`, or -1. */
static int operation_of(const ort_node *node)
{
#define WORD(name, result) #name,
    static const char *const names[] = {OPERATIONS(WORD)};
#undef WORD
    for (int i = 0; i < OPERATION_COUNT; i++)
        if (ort_edit_is(node, ONNX, names[i]))
            return node->opset >= 7 ? i : -1;
    return -1;
}

/* Is what the comparison says of 1 true of all positive integers? */
static bool is_about_zero(int op, const cases *a, const cases *b)
{
    const cases *other = a->raw ? b : a;
    return a->raw != b->raw && !other->varies && other->at[0] == 0 &&
           (op == OF_Equal || op == (a->raw ? OF_Greater : OF_Less));
}

/* A value that varies has its dims where the result has them. */
static bool is_whole(const reader *r, const ort_node *node, int slot, const cases *s)
{
    return !s->varies || !r->from_front ||
           ort_fact_type(r->graph, node->inputs[slot])->rank ==
               ort_fact_type(r->graph, node->outputs[0])->rank;
}

static bool read_inputs(reader *r, const ort_node *node, int count, cases *in)
{
    for (int i = 0; i < count; i++)
        if (!ort_cases_read(r, node->inputs[i], &in[i]) || !is_whole(r, node, i, &in[i]))
            return false;
    return true;
}

static bool read_two(reader *r, const ort_node *node, int op, cases *s)
{
    cases in[2], *a = &in[0], *b = &in[1];
    if (!read_inputs(r, node, 2, in))
        return false;
    bool compares = op >= OF_Equal;
    if (compares && (a->loose || b->loose || ((a->raw || b->raw) && !is_about_zero(op, a, b))))
        return false;
    for (int i = 0; i < 2; i++)
        s->at[i] = combine(op, a->at[i], b->at[i]);
    s->varies = a->varies || b->varies;
    s->loose = !compares && (a->raw || b->raw || a->loose || b->loose);
    s->raw = false;
    return !isnan(s->at[0]) && !isnan(s->at[1]);
}

static bool read_choice(reader *r, const ort_node *node, cases *s)
{
    cases in[3];
    if (!read_inputs(r, node, 3, in))
        return false;
    for (int i = 0; i < 2; i++)
        s->at[i] = in[in[0].at[i] != 0 ? 1 : 2].at[i];
    s->varies = in[0].varies || in[1].varies || in[2].varies;
    s->loose = in[1].raw || in[2].raw || in[1].loose || in[2].loose;
    s->raw = false;
    return true;
}

static bool read_cast(reader *r, const ort_node *node, cases *s)
{
    ort_dtype to = ort_fact_type(r->graph, node->outputs[0])->dtype;
    if (!ort_cases_read(r, node->inputs[0], s))
        return false;
    s->loose = s->loose && to != ORT_DTYPE_BOOL;
    s->raw = s->raw && to != ORT_DTYPE_BOOL;
    if (to == ORT_DTYPE_INT32 || to == ORT_DTYPE_INT64)
        return s->at[0] == trunc(s->at[0]) && s->at[1] == trunc(s->at[1]);
    for (int i = 0; i < 2 && to == ORT_DTYPE_BOOL; i++)
        s->at[i] = s->at[i] != 0;
    return to == ORT_DTYPE_BOOL || to == ORT_DTYPE_FLOAT;
}

static bool read_node(reader *r, const ort_node *node, cases *s)
{
    int op = operation_of(node);
    if (op >= 0)
        return read_two(r, node, op, s);
    if (ort_edit_is(node, ONNX, "Where"))
        return read_choice(r, node, s);
    if (ort_edit_is(node, ONNX, "Cast"))
        return read_cast(r, node, s);
    if (ort_node_has_trait(node, ORT_TRAIT_ALIAS) || ort_edit_is(node, ONNX, "Expand"))
        return ort_cases_read(r, node->inputs[0], s) &&
               (!s->varies || !r->keeps_place || r->keeps_place(r, node));
    if (!ort_edit_is(node, ONNX, "Not") || !ort_cases_read(r, node->inputs[0], s))
        return false;
    s->at[0] = s->at[0] == 0;
    s->at[1] = s->at[1] == 0;
    return true;
}

bool ort_cases_read(ort_cases_reader *r, ort_id id, ort_cases *s)
{
    const ort_node *node = ort_edit_producer(r->graph, id);
    ort_id before = r->source;
    if (r->depth > DEPTH)
        return false;
    if (read_constant(r, id, s))
        return true;
    r->depth++;
    bool found = node && read_node(r, node, s) && (!s->varies || r->is_placed(r, id));
    if (!found) {
        r->source = before;
        found = r->leaf(r, id, s);
    }
    r->depth--;
    return found;
}
