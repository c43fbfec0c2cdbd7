/* transpose_region.c - a region grows from Transposes by p and by its inverse over every operator
 * that has a form (transpose_rules.c), forwards and backwards, as far as permutations agree. */
#include "pass/transpose/transpose_region.h"

#include <stdlib.h>
#include <string.h>

#include "graph/uses.h"
#include "pass/facts/constants.h"

/* MatMul of the value and what isn't constant, or FusedMatMul. */
static bool is_product_of_data(const ort_graph *graph, const ort_node *node, ort_id id)
{
    if (!strcmp(node->op_type, "FusedMatMul"))
        return true;
    return !strcmp(node->op_type, "MatMul") &&
           !ort_edit_constant(graph, node, node->inputs[0] == id ? 1 : 0);
}

/* A product of data takes a Transpose of its operand's last two dimensions in (FusedMatMul,
 * attention): it counts as part of the product. */
static bool belongs_to_product(const ort_graph *graph, const ort_node *node, const ort_perm *p)
{
    int r = p->rank;
    const ort_node *reader;
    if (r < 2 || p->to[r - 1] != r - 2 || p->to[r - 2] != r - 1)
        return false;
    for (int i = 0; i < r - 2; i++)
        if (p->to[i] != i)
            return false;
    ort_readers readers = ort_readers_of(graph, node->outputs[0]);
    bool any = false;
    while ((reader = ort_readers_next(&readers))) {
        if (!is_product_of_data(graph, reader, node->outputs[0]))
            return false;
        any = true;
    }
    return any;
}

bool ort_region_transpose(const ort_graph *graph, const ort_node *node, ort_perm *p)
{
    ort_perm own;
    p = p ? p : &own;
    return ort_edit_is(node, ONNX, "Transpose") && ort_perm_of_node(graph, node, p) &&
           !ort_perm_is_identity(p) && !belongs_to_product(graph, node, p);
}

bool ort_region_undoes(const ort_region *r, const ort_node *node)
{
    ort_id x = node->inputs[0];
    ort_perm have;
    if (x >= r->value_count || r->perm_of[x] < 0 || !ort_perm_of_node(r->graph, node, &have))
        return false;
    have = ort_perm_then(ort_region_perm(r, x), &have);
    return ort_perm_is_identity(&have);
}

bool ort_region_makes(const ort_region *r, const ort_node *node)
{
    ort_id y = node->outputs[0];
    ort_perm have;
    return y < r->value_count && r->perm_of[y] >= 0 && ort_perm_of_node(r->graph, node, &have) &&
           ort_perm_equal(ort_region_perm(r, y), &have);
}

/* ---- growing */

static short intern(ort_region *r, const ort_perm *p)
{
    for (size_t i = 0; i < r->perms.count; i++)
        if (ort_perm_equal(&r->perms.data[i], p))
            return (short)i;
    if (r->perms.count >= ORT_REGION_PERMS || !ort_vec_push(&r->perms, *p))
        return -1;
    return (short)(r->perms.count - 1);
}

/* Can the value lie permuted by p, as far as it is known by now? */
static bool agrees(const ort_region *r, ort_id id, short p)
{
    return p >= 0 && id < r->value_count && (r->perm_of[id] < 0 || r->perm_of[id] == p);
}

static bool enter(ort_region *r, ort_id id, short p)
{
    if (r->perm_of[id] == p)
        return true;
    r->perm_of[id] = p;
    return ort_perm_is_identity(&r->perms.data[p]) || ort_vec_push(&r->values, id);
}

static bool inputs_agree(const ort_region *r, const ort_node *node, short in)
{
    for (int i = 0; i < node->input_count; i++)
        if (ort_slot_permuted(r->graph, node, i) &&
            !ort_constant_moves(r->graph, node->inputs[i]) && !agrees(r, node->inputs[i], in))
            return false;
    return true;
}

static bool outputs_agree(const ort_region *r, const ort_node *node, short out)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE && ort_output_permuted(node, i) &&
            !agrees(r, node->outputs[i], out))
            return false;
    return true;
}

/* Is `from` read as data, and only so? Other slots ask for it as it is. */
static bool reads_data(const ort_region *r, const ort_node *node, ort_id from)
{
    bool data = false;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] == from && !ort_slot_permuted(r->graph, node, i))
            return false;
        else
            data = data || node->inputs[i] == from;
    return data;
}

static bool computes_data(const ort_node *node, ort_id id)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] == id)
            return ort_output_permuted(node, i);
    return false;
}

static bool add_member(ort_region *r, ort_node *node, const ort_permuted *form, short in, short out)
{
    ort_member m = {.node = node, .form = *form};
    r->member_of[node->id] = (int)r->members.count;
    if (!ort_vec_push(&r->members, m))
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (ort_slot_permuted(r->graph, node, i) &&
            !ort_constant_moves(r->graph, node->inputs[i]) && !enter(r, node->inputs[i], in))
            return false;
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE && ort_output_permuted(node, i) &&
            !enter(r, node->outputs[i], out))
            return false;
    return true;
}

/* What the far side of a node lies permuted by already, else all permutations of the region. */
static ort_perm_hints hints_of(const ort_region *r, const ort_node *node, bool forward)
{
    int count = forward ? node->output_count : node->input_count;
    for (int i = 0; i < count; i++) {
        ort_id id = forward ? node->outputs[i] : node->inputs[i];
        if (id < r->value_count && r->perm_of[id] >= 0 &&
            (forward || ort_slot_permuted(r->graph, node, i)))
            return (ort_perm_hints){ort_region_perm(r, id), 1};
    }
    return (ort_perm_hints){r->perms.data, r->perms.count};
}

/* False when memory is exhausted. */
static bool try_node(ort_region *r, ort_node *node, ort_id from, bool forward)
{
    ort_permuted form;
    if (node->id >= r->node_count || r->member_of[node->id] >= 0 ||
        ort_region_transpose(r->graph, node, NULL))
        return true;
    ort_perm_hints hints = hints_of(r, node, forward);
    ort_perm known = *ort_region_perm(r, from);
    if (!ort_node_permuted(r->graph, node, &known, forward, &hints, &form) ||
        !(forward ? reads_data(r, node, from) : computes_data(node, from)))
        return true;
    short in = intern(r, &form.in), out = intern(r, &form.out);
    if (in < 0 || out < 0 || !inputs_agree(r, node, in) || !outputs_agree(r, node, out))
        return true;
    return add_member(r, node, &form, in, out);
}

static bool grow(ort_region *r)
{
    for (size_t at = 0; at < r->values.count; at++) {
        ort_id id = r->values.data[at];
        ort_node *node = ort_edit_producer(r->graph, id);
        if (node && !try_node(r, node, id, false))
            return false;
        ort_readers readers = ort_readers_of(r->graph, id);
        while ((node = ort_readers_next(&readers)))
            if (!try_node(r, node, id, true))
                return false;
    }
    return true;
}

/* All values between Transposes by p and its inverse. */
static bool seed(ort_region *r, const ort_perm *p)
{
    ort_perm back = ort_perm_inverse(p), have;
    short index = intern(r, p);
    ort_node *node;
    ORT_EACH_NODE(r->graph, node)
    {
        if (!ort_region_transpose(r->graph, node, &have))
            continue;
        if (ort_perm_equal(&have, p) && agrees(r, node->outputs[0], index) &&
            !enter(r, node->outputs[0], index))
            return false;
        if (ort_perm_equal(&have, &back) && !ort_constant_moves(r->graph, node->inputs[0]) &&
            agrees(r, node->inputs[0], index) && !enter(r, node->inputs[0], index))
            return false;
    }
    return true;
}

bool ort_region_find(ort_region *r, ort_pass_context *c, const ort_perm *p)
{
    *r = (ort_region){.c = c, .graph = c->graph, .node_count = c->graph->nodes.count,
                      .value_count = c->graph->values.count};
    r->member_of = malloc((r->node_count + 1) * sizeof *r->member_of);
    r->perm_of = malloc((r->value_count + 1) * sizeof *r->perm_of);
    if (!r->member_of || !r->perm_of)
        return false;
    memset(r->member_of, 0xff, (r->node_count + 1) * sizeof *r->member_of);
    memset(r->perm_of, 0xff, (r->value_count + 1) * sizeof *r->perm_of);
    return seed(r, p) && grow(r);
}

void ort_region_release(ort_region *r)
{
    free(r->member_of);
    free(r->perm_of);
    ort_vec_release(&r->perms);
    ort_vec_release(&r->members);
    ort_vec_release(&r->values);
}
