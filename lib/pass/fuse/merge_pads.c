/* merge_pads.c - a Pad of a Pad with the same constant is one Pad.
 *
 *     Pad p of v, Pad q of v     Pad p + q of v
 *
 * Both are of mode constant: the number v is the same to the bit, or both leave it out, amounts are
 * constant and none is negative, since what the second cuts the first may have put there. Mode edge
 * and its like stay: their second Pad copies what the first has made. The first Pad stays when
 * others read it.
 */
#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/rewrite.h"
#include "tensor/scalar.h"

typedef struct margins {
    int rank;
    int64_t amount[2 * ORT_MAX_RANK]; /* [begin..., end...] */
    const ort_tensor *number;         /* NULL: zero */
    float attr;                       /* before opset 11 */
} margins;

static bool read_margins(const ort_graph *graph, const ort_node *pad, margins *m)
{
    *m = (margins){.rank = ort_type_rank(ort_fact_type(graph, pad->inputs[0]))};
    if (!ort_node_attr_is(pad, "mode", "constant") || m->rank < 0 ||
        !ort_fact_pads(graph, pad, m->rank, m->amount))
        return false;
    if (pad->opset < 11)
        m->attr = ort_node_attr_float(pad, "value");
    else if (ort_edit_input(pad, 2) != ORT_ID_NONE &&
             !ort_tensor_is_one(m->number = ort_edit_constant(graph, pad, 2)))
        return false;
    for (int i = 0; i < 2 * m->rank; i++)
        if (m->amount[i] < 0 || m->amount[i] > INT32_MAX)
            return false;
    return true;
}

static bool same_number(const margins *a, const margins *b)
{
    if (!a->number || !b->number)
        return a->number == b->number && !memcmp(&a->attr, &b->attr, sizeof a->attr);
    return a->number->dtype == b->number->dtype &&
           !memcmp(a->number->data, b->number->data, ort_tensor_bytes(a->number));
}

/* The second takes the input of the first, and both amounts, over all axes. */
static ort_status merge(ort_pass_context *c, ort_node *first, ort_node *second, const margins *sum,
                        ort_error *err)
{
    int count = 2 * sum->rank;
    ort_attr pads = ort_attr_ints("pads", sum->amount, count);
    ort_id inputs[3] = {first->inputs[0], ORT_ID_NONE, ort_edit_input(second, 2)};
    bool listed = second->opset >= 11;
    if (listed)
        ORT_TRY(ort_constant_list(c->graph, sum->amount, count, &inputs[1], err));
    ort_node_spec spec = {.op_type = "Pad", .name = second->name, .inputs = inputs,
                          .input_count = 3, .attrs = second->attrs,
                          .attr_count = second->attr_count, .set = &pads,
                          .set_count = listed ? 0 : 1, .opset = second->opset};
    return ort_edit_replace(c->graph, first, second, &spec, err);
}

static ort_status write(ort_pass_context *c, ort_match *m, int *changes, ort_error *err)
{
    ort_node *second = m->nodes[0], *first = m->nodes[1];
    margins a, b;
    if (!read_margins(c->graph, first, &a) || !read_margins(c->graph, second, &b) ||
        !same_number(&a, &b)) {
        ort_pass_note(c, second, "the pad before it isn't of the same constant");
        return ORT_OK;
    }
    for (int i = 0; i < 2 * a.rank; i++)
        b.amount[i] += a.amount[i];
    ++*changes;
    return merge(c, first, second, &b, err);
}

static const ort_rewrite rewrites[] = {
    {"(Pad (Pad x ...) ...)", .write = write,
     .example = "x:2,3 Pad.pads=0,1,2,0 Pad.value=0.5 opset=10"},
    {0},
};

const ort_pass ort_pass_merge_pads = {
    .name = "merge_pads",
    .level = 1,
    .doc = "two pads in a row of the same constant become one",
    .rewrites = rewrites,
};
