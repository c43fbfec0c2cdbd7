/* push_transposes.c - regions of operators run in another layout where that saves Transposes.
 *
 *     NHWC:  Transpose -> Conv -> Transpose -> Add c -> Relu -> Transpose -> Conv -> Transpose
 *     NCHW:  Transpose -> Conv -> Add c' -> Relu -> Conv -> Transpose
 *
 * For a permutation p, a region are the operators around Transposes by p and its inverse that give
 * the same when their data lies permuted (transpose_rules.c). Each of them may stay or change; a
 * value needed in both layouts costs a Transpose, once, whoever needs it; constants are laid anew.
 * Which ones change is a minimal cut: the best choice for the region, not one push at a time. The
 * number of Transposes counts first, bits moved second, and nothing changes without a gain, so
 * that a second run finds nothing.
 *
 *     stays | changes             source, vertices of operators | sink
 *     v computed by P, read by C, costs w:   P -w-> a, a -> C     P stays, some C changes
 *                                            C -> b, b -w-> P     P changes, some C stays
 *
 * Where both sides y = Transpose(x) of a Transpose are of the region, y permuted is x again: no cut
 * can say that. Then y is either charged as made from x (which must be there as it is), or as x
 * permuted; neither promises too much. The best is taken of all one way, all the other way, and
 * either way by turns, since of p = its inverse the first Transpose enters what the second leaves.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/min_cut.h"
#include "graph/uses.h"
#include "op/move.h"
#include "pass/transpose_rules.h"

enum { SOURCE = 0, SINK = 1, MAX_PERMS = 64 };

enum { TO_RESULT, TO_SOURCE, BY_TURNS, BY_OTHER_TURNS, WAYS };

#define ONE_TRANSPOSE ((int64_t)1 << 48) /* more than all bits that a model moves */

typedef struct member { /* an operator of the region */
    ort_node *node;
    ort_permuted form;
    uint32_t vertex;
} member;

typedef struct region {
    ort_pass_context *c;
    ort_graph *graph;
    int *member_of;  /* by node id: index into members, or -1 */
    short *perm_of;  /* by value id: index into perms, or -1: not of the region */
    ort_id *flipped; /* by value id: the permuted value, or ORT_ID_NONE */
    size_t value_count;
    ORT_VEC(ort_perm) perms;
    ORT_VEC(member) members;
    ORT_VEC(ort_id) values;
    ort_min_cut cut;
    int way;        /* how a Transpose inside of the region is charged, one of WAYS... */
    bool inside;    /* ...if there is one */
    bool *second;   /* by node id, of Transposes: an even number of them are before it; or NULL */
    int64_t now;    /* cost as it is */
    bool *changes;  /* by vertex */
} region;

/* A product takes a Transpose of its operand's last two dimensions in (FusedMatMul, attention): it
 * counts as part of the product. */
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
        if (strcmp(reader->op_type, "MatMul") && strcmp(reader->op_type, "FusedMatMul"))
            return false;
        any = true;
    }
    return any;
}

/* A Transpose of a known permutation that moves something; p may be NULL. */
static bool is_transpose(const ort_graph *graph, const ort_node *node, ort_perm *p)
{
    ort_perm own;
    p = p ? p : &own;
    return ort_edit_is(node, ONNX, "Transpose") && ort_perm_of_node(graph, node, p) &&
           !ort_perm_is_identity(p) && !belongs_to_product(graph, node, p);
}

static const ort_perm *perm_at(const region *r, ort_id id)
{
    return &r->perms.data[r->perm_of[id]];
}

/* ---- growing the region */

static short intern(region *r, const ort_perm *p)
{
    for (size_t i = 0; i < r->perms.count; i++)
        if (ort_perm_equal(&r->perms.data[i], p))
            return (short)i;
    if (r->perms.count >= MAX_PERMS || !ort_vec_push(&r->perms, *p))
        return -1;
    return (short)(r->perms.count - 1);
}

/* Can the value lie permuted by p, as far as it is known by now? */
static bool agrees(const region *r, ort_id id, short p)
{
    return p >= 0 && id < r->value_count && (r->perm_of[id] < 0 || r->perm_of[id] == p);
}

static bool enter(region *r, ort_id id, short p)
{
    if (r->perm_of[id] == p)
        return true;
    r->perm_of[id] = p;
    return ort_vec_push(&r->values, id);
}

/* False when memory is exhausted. */
static bool try_node(region *r, ort_node *node, ort_id from, bool forward)
{
    ort_permuted form;
    if (node->id >= r->graph->nodes.count || r->member_of[node->id] >= 0 ||
        is_transpose(r->graph, node, NULL) ||
        !ort_node_permuted(r->graph, node, perm_at(r, from), forward, &form))
        return true;
    short in = intern(r, &form.in), out = intern(r, &form.out);
    bool fits = in >= 0 && out >= 0, read = !forward;
    for (int i = 0; i < node->input_count && fits; i++)
        if (!ort_slot_permuted(r->graph, node, i)) {
            fits = node->inputs[i] != from; /* it asks for both at once */
        } else {
            fits = ort_constant_moves(r->graph, node->inputs[i]) ||
                   agrees(r, node->inputs[i], in);
            read = read || node->inputs[i] == from;
        }
    for (int i = 0; i < node->output_count && fits; i++)
        fits = node->outputs[i] == ORT_ID_NONE || agrees(r, node->outputs[i], out);
    if (!fits || !read)
        return true;
    member m = {.node = node, .form = form};
    r->member_of[node->id] = (int)r->members.count;
    if (!ort_vec_push(&r->members, m))
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (ort_slot_permuted(r->graph, node, i) &&
            !ort_constant_moves(r->graph, node->inputs[i]) && !enter(r, node->inputs[i], in))
            return false;
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE && !enter(r, node->outputs[i], out))
            return false;
    return true;
}

static bool grow(region *r)
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
static bool seed(region *r, const ort_perm *p)
{
    ort_perm back = ort_perm_inverse(p), have;
    short index = intern(r, p);
    ort_node *node;
    ORT_EACH_NODE(r->graph, node)
    {
        if (!is_transpose(r->graph, node, &have))
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

/* ---- the cut */

static int64_t weight(const region *r, ort_id id)
{
    const ort_type *type = &r->graph->values.data[id]->fact.type;
    int64_t bits = type->dtype ? ort_dtype_get(type->dtype)->bits : 32;
    for (int i = 0; i < type->rank && bits < ONE_TRANSPOSE; i++)
        bits *= ort_dim_known(type->dim[i]) ? type->dim[i].size : 16;
    int64_t most = ONE_TRANSPOSE >> 12;
    return ONE_TRANSPOSE + (bits < most ? bits : most);
}

/* Is y of y = Transpose(x) the permuted x? */
static bool undoes(const region *r, const ort_node *node)
{
    ort_id x = node->inputs[0];
    ort_perm have;
    if (x >= r->value_count || r->perm_of[x] < 0 || !ort_perm_of_node(r->graph, node, &have))
        return false;
    have = ort_perm_then(perm_at(r, x), &have);
    return ort_perm_is_identity(&have);
}

/* Is x of y = Transpose(x) the permuted y? */
static bool makes(const region *r, const ort_node *node)
{
    ort_id y = node->outputs[0];
    ort_perm have;
    return y < r->value_count && r->perm_of[y] >= 0 && ort_perm_of_node(r->graph, node, &have) &&
           ort_perm_equal(perm_at(r, y), &have);
}

/* Is this Transpose charged to its source? */
static bool as_source(const region *r, const ort_node *node)
{
    if (r->way <= TO_SOURCE)
        return r->way == TO_SOURCE;
    return r->second[node->id] == (r->way == BY_TURNS);
}

/* What a reader of `id` asks for: a vertex of its own, SOURCE: as it is, SINK: permuted,
 * UINT32_MAX: it is a Transpose that reads either. */
static uint32_t wants(region *r, ort_id id, const ort_node *node)
{
    int index = r->member_of[node->id];
    if (index >= 0)
        return r->members.data[index].vertex;
    if (!is_transpose(r->graph, node, NULL))
        return SOURCE;
    bool undo = undoes(r, node), make = makes(r, node);
    r->inside = r->inside || (undo && make);
    if (undo && make)
        return as_source(r, node) ? SINK : SOURCE;
    return undo ? SINK : make ? SOURCE : UINT32_MAX;
}

typedef struct costs { /* of having a value one way or the other, beside its producer */
    uint32_t producer; /* vertex; SOURCE: it comes as it is; UINT32_MAX: a Transpose gives it */
    int64_t as_is, permuted;
} costs;

static costs costs_of(const region *r, ort_id id)
{
    ort_node *node = ort_edit_producer(r->graph, id);
    int64_t w = weight(r, id);
    if (node && r->member_of[node->id] >= 0)
        return (costs){r->members.data[r->member_of[node->id]].vertex, w, w};
    if (!is_transpose(r->graph, node, NULL))
        return (costs){SOURCE, 0, w};
    bool undo = undoes(r, node), make = makes(r, node);
    if (undo && make) /* what the source is charged for costs nothing here */
        return (costs){UINT32_MAX, as_source(r, node) ? 0 : w, as_source(r, node) ? w : 0};
    return (costs){UINT32_MAX, undo ? 0 : w, make ? 0 : w};
}

static bool add_value(region *r, ort_id id)
{
    ort_min_cut *cut = &r->cut;
    const ort_graph_value *value = r->graph->values.data[id];
    costs k = costs_of(r, id);
    bool fed = k.producer == UINT32_MAX, stays = value->is_output, asked = false;
    uint32_t a = ort_min_cut_vertex(cut), b = ort_min_cut_vertex(cut);
    bool ok = a != UINT32_MAX && b != UINT32_MAX &&
              ort_min_cut_edge(cut, fed ? SOURCE : k.producer, a, k.permuted) &&
              ort_min_cut_edge(cut, b, fed ? SINK : k.producer, k.as_is);
    ort_readers readers = ort_readers_of(r->graph, id);
    const ort_node *node;
    while (ok && (node = ort_readers_next(&readers))) {
        uint32_t vertex = wants(r, id, node);
        if (vertex == UINT32_MAX)
            continue;
        asked = asked || vertex == SINK;
        stays = stays || vertex != SINK; /* as long as nothing changes */
        if (vertex != SOURCE)
            ok = ok && ort_min_cut_edge(cut, a, vertex, ORT_CUT_NEVER);
        if (vertex != SINK)
            ok = ok && ort_min_cut_edge(cut, vertex, b, ORT_CUT_NEVER);
    }
    if (value->is_output)
        ok = ok && ort_min_cut_edge(cut, SOURCE, b, ORT_CUT_NEVER);
    r->now += (asked ? k.permuted : 0) + (fed && stays ? k.as_is : 0);
    return ok;
}

/* The cheapest choice of one way to charge; *gain: by how much it is better. */
static bool choose(region *r, bool **changes, int64_t *gain)
{
    int64_t best;
    ort_min_cut_release(&r->cut);
    r->now = 0;
    bool ok = ort_min_cut_vertex(&r->cut) == SOURCE && ort_min_cut_vertex(&r->cut) == SINK;
    for (size_t i = 0; i < r->members.count && ok; i++) {
        r->members.data[i].vertex = ort_min_cut_vertex(&r->cut);
        ok = r->members.data[i].vertex != UINT32_MAX;
    }
    for (size_t i = 0; i < r->values.count && ok; i++)
        ok = add_value(r, r->values.data[i]);
    *changes = ok ? calloc(r->cut.heads.count, sizeof **changes) : NULL;
    if (!*changes || !ort_min_cut_run(&r->cut, *changes, &best))
        return false;
    *gain = r->now - best;
    return true;
}

/* Which Transposes are the second, fourth ... on the longest way to them; false: no memory. */
static bool number_turns(region *r)
{
    size_t nodes = r->graph->nodes.count, values = r->graph->values.count;
    int *before = calloc(values + 1, sizeof *before);
    r->second = calloc(nodes + 1, sizeof *r->second);
    ort_node *node;
    ORT_EACH_NODE(r->graph, node)
    {
        int most = 0;
        for (int i = 0; before && r->second && i < node->input_count; i++)
            if (node->inputs[i] != ORT_ID_NONE && before[node->inputs[i]] > most)
                most = before[node->inputs[i]];
        if (!before || !r->second)
            break;
        bool turns = is_transpose(r->graph, node, NULL) && undoes(r, node) && makes(r, node);
        r->second[node->id] = turns && most % 2;
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != ORT_ID_NONE)
                before[node->outputs[i]] = most + turns;
    }
    free(before);
    return before && r->second;
}

static ort_status decide(region *r, bool *gain, ort_error *err)
{
    int64_t best = 0;
    bool ok = choose(r, &r->changes, &best);
    if (ok && r->inside)
        ok = number_turns(r);
    for (r->way = TO_SOURCE; ok && r->inside && r->way < WAYS; r->way++) {
        int64_t other_gain = 0;
        bool *other = NULL;
        ok = choose(r, &other, &other_gain);
        if (ok && other_gain > best) {
            bool *swap = r->changes;
            r->changes = other;
            other = swap;
            best = other_gain;
        }
        free(other);
    }
    *gain = best > 0;
    return ok ? ORT_OK : ort_error_memory(err, r->cut.edges.count * sizeof(ort_cut_edge));
}

/* ---- rewriting */

static bool changes(const region *r, const ort_node *node)
{
    int index = node && node->id < r->graph->nodes.count ? r->member_of[node->id] : -1;
    return index >= 0 && r->changes[r->members.data[index].vertex];
}

static ort_status add_transpose(region *r, ort_id in, const ort_perm *p, const ort_node *origin,
                                ort_id *out, ort_error *err)
{
    int64_t list[ORT_MAX_RANK];
    for (int i = 0; i < p->rank; i++)
        list[i] = p->to[i];
    ort_attr perm = {.name = "perm", .type = ORT_ATTR_INTS, .ints = list,
                     .count = (size_t)p->rank};
    if (*out == ORT_ID_NONE)
        *out = ort_graph_add_value(r->graph, r->graph->values.data[in]->name);
    if (*out == ORT_ID_NONE)
        return ort_error_memory(err, sizeof perm);
    ort_node_spec spec = {.domain = ONNX, .op_type = "Transpose",
                          .name = r->graph->values.data[*out]->name, .inputs = &in,
                          .input_count = 1, .outputs = out, .output_count = 1, .set = &perm,
                          .set_count = 1, .origin = origin ? ort_edit_origin_of(origin) : NULL};
    return ort_edit_add_node(r->graph, &spec, NULL, err);
}

/* A constant with all dimensions of the permutation, laid anew. */
static ort_status lay_anew(region *r, ort_id id, const ort_perm *p, ort_id *made, ort_error *err)
{
    const ort_graph_value *value = r->graph->values.data[id];
    const ort_tensor *from = value->fact.value;
    int64_t stride[ORT_MAX_RANK], to[ORT_MAX_RANK];
    int skip = p->rank - from->shape.rank;
    ort_shape full = {.rank = p->rank}, shape = {.rank = p->rank};
    ort_perm inverse = ort_perm_inverse(p);
    ort_value *copy = NULL;
    for (int i = 0; i < p->rank; i++)
        full.dim[i] = i < skip ? 1 : from->shape.dim[i - skip];
    for (int i = 0; i < p->rank; i++)
        shape.dim[i] = full.dim[inverse.to[i]];
    ORT_TRY(ort_value_new_tensor_(from->dtype, &shape, &copy, err));
    ort_shape_strides(&full, stride);
    ort_shape_strides(&shape, to);
    ort_move move = ort_move_between(from, &copy->tensor);
    for (int i = 0; i < p->rank; i++)
        ort_move_add(&move, shape.dim[i], stride[inverse.to[i]], to[i]);
    ort_move_run(&move, NULL);
    ort_status status = ort_edit_add_constant(r->graph, value->name, &copy->tensor, made, err);
    ort_value_free(copy);
    return status;
}

/* The value as its permuted readers want it. */
static ort_status flip(region *r, ort_id id, const ort_perm *p, ort_id *made, ort_error *err)
{
    ort_node *producer = ort_edit_producer(r->graph, id);
    ort_perm inverse = ort_perm_inverse(p), have;
    *made = id < r->value_count ? r->flipped[id] : ORT_ID_NONE;
    if (*made != ORT_ID_NONE)
        return ORT_OK;
    if (ort_constant_moves(r->graph, id))
        return lay_anew(r, id, p, made, err); /* one per reader: they are merged later */
    ort_id source = id;
    ort_perm whole = inverse;
    if (is_transpose(r->graph, producer, &have)) {
        source = producer->inputs[0];
        whole = ort_perm_then(&have, &inverse);
        if (source < r->value_count && r->flipped[source] != ORT_ID_NONE) {
            whole = ort_perm_then(perm_at(r, source), &whole);
            source = r->flipped[source];
        }
    }
    *made = ort_perm_is_identity(&whole) ? source : ORT_ID_NONE;
    if (*made == ORT_ID_NONE)
        ORT_TRY(add_transpose(r, source, &whole, producer, made, err));
    r->flipped[id] = *made;
    return ORT_OK;
}

static ort_status rewrite_member(region *r, const member *m, ort_error *err)
{
    ort_node *node = m->node;
    int ins = node->input_count, outs = node->output_count;
    ort_id *ids = malloc((size_t)(ins + outs) * sizeof *ids);
    ort_status status = ids ? ORT_OK : ort_error_memory(err, sizeof *ids * (size_t)(ins + outs));
    for (int i = 0; i < ins && !status; i++) {
        ids[i] = ORT_ID_NONE;
        if (ort_slot_permuted(r->graph, node, i))
            status = flip(r, node->inputs[i], &m->form.in, &ids[i], err);
    }
    for (int i = 0; i < outs && !status; i++) {
        ids[ins + i] = ORT_ID_NONE;
        if (node->outputs[i] == ORT_ID_NONE)
            continue;
        ids[ins + i] = ort_graph_add_value(r->graph,
                                           r->graph->values.data[node->outputs[i]]->name);
        if (ids[ins + i] == ORT_ID_NONE)
            status = ort_error_memory(err, sizeof *ids);
        r->flipped[node->outputs[i]] = ids[ins + i];
    }
    if (!status)
        status = ort_add_permuted(r->c, node, &m->form, ids, ids + ins, err);
    if (!status)
        ort_graph_remove_node(r->graph, node);
    free(ids);
    return status;
}

/* Transposes read what lies permuted now. */
static ort_status redirect(region *r, ort_id id, ort_error *err)
{
    ort_readers readers = ort_readers_of(r->graph, id);
    ort_node *node;
    while ((node = ort_readers_next(&readers))) {
        ort_perm have, whole;
        int64_t list[ORT_MAX_RANK];
        if (!is_transpose(r->graph, node, &have) || node->inputs[0] != id ||
            node->outputs[0] == r->flipped[id])
            continue;
        whole = ort_perm_then(perm_at(r, id), &have);
        if (ort_edit_producer(r->graph, id) && !ort_perm_is_identity(&whole))
            continue; /* as good as it is */
        for (int i = 0; i < whole.rank; i++)
            list[i] = whole.to[i];
        ort_attr perm = {.name = "perm", .type = ORT_ATTR_INTS, .ints = list,
                         .count = (size_t)whole.rank};
        ort_node_set_input(r->graph, node, 0, r->flipped[id]);
        ORT_TRY(ort_edit_set_attr(r->graph, node, &perm, err));
        if (ort_perm_is_identity(&whole) && !r->graph->values.data[node->outputs[0]]->is_output)
            (void)ort_edit_bypass(r->graph, node, 0);
    }
    return ORT_OK;
}

/* Transposes that nobody reads any more would count as if somebody did. */
static void drop_unread(const region *r)
{
    for (size_t i = 0; i < r->values.count; i++) {
        const ort_graph_value *value = r->graph->values.data[r->values.data[i]];
        ort_node *producer = ort_edit_producer(r->graph, r->values.data[i]);
        if (!value->use_count && !value->is_output && is_transpose(r->graph, producer, NULL))
            ort_graph_remove_node(r->graph, producer);
    }
}

static ort_status rewrite(region *r, ort_error *err)
{
    size_t count = r->graph->order.count;
    for (size_t i = 0; i < count; i++) { /* producers first */
        ort_node *node = r->graph->nodes.data[r->graph->order.data[i]];
        if (!node->removed && changes(r, node))
            ORT_TRY(rewrite_member(r, &r->members.data[r->member_of[node->id]], err));
    }
    for (size_t i = 0; i < r->values.count; i++) {
        ort_id id = r->values.data[i];
        if (r->flipped[id] == ORT_ID_NONE)
            continue;
        ORT_TRY(redirect(r, id, err));
        const ort_graph_value *value = r->graph->values.data[id];
        if (value->producer == ORT_ID_NONE && !value->is_input && value->outer == ORT_ID_NONE &&
            !value->fact.value && value->use_count > 0)
            ORT_TRY(add_transpose(r, r->flipped[id], perm_at(r, id), NULL, &id, err));
    }
    drop_unread(r);
    return ORT_OK;
}

/* ---- one permutation after the other */

static void release(region *r)
{
    free(r->member_of);
    free(r->perm_of);
    free(r->flipped);
    free(r->changes);
    free(r->second);
    ort_vec_release(&r->perms);
    ort_vec_release(&r->members);
    ort_vec_release(&r->values);
    ort_min_cut_release(&r->cut);
}

static bool begin(region *r)
{
    size_t nodes = r->graph->nodes.count, values = r->graph->values.count;
    r->value_count = values;
    r->member_of = malloc((nodes + 1) * sizeof *r->member_of);
    r->perm_of = malloc((values + 1) * sizeof *r->perm_of);
    r->flipped = malloc((values + 1) * sizeof *r->flipped);
    if (!r->member_of || !r->perm_of || !r->flipped)
        return false;
    memset(r->member_of, 0xff, (nodes + 1) * sizeof *r->member_of);
    memset(r->perm_of, 0xff, (values + 1) * sizeof *r->perm_of);
    memset(r->flipped, 0xff, (values + 1) * sizeof *r->flipped);
    return true;
}

/* A neighbour of this Transpose that isn't of the region; or NULL. */
static const ort_node *border(const region *r, const ort_node *transpose)
{
    const ort_node *node = ort_edit_producer(r->graph, transpose->inputs[0]);
    ort_readers readers = ort_readers_of(r->graph, transpose->outputs[0]);
    for (; node || (node = ort_readers_next(&readers)); node = NULL)
        if (r->member_of[node->id] < 0 && !is_transpose(r->graph, node, NULL))
            return node;
    return NULL;
}

/* Why Transposes by p stay. */
static void note_region(const region *r, const ort_perm *p)
{
    char label[160];
    ort_perm have;
    ort_node *node;
    ORT_EACH_NODE(r->graph, node)
    {
        if (!is_transpose(r->graph, node, &have) || !ort_perm_equal(&have, p))
            continue;
        const ort_node *at = border(r, node);
        if (at)
            ort_pass_note(r->c, node, "%s doesn't run in another layout",
                          ort_node_label(at, label, sizeof label));
        else
            ort_pass_note(r->c, node, "around it the other layout takes as many Transposes");
    }
}

/* Rewrites the region of p where that gains something; or (noting) tells why it doesn't. */
static ort_status push(ort_pass_context *c, const ort_perm *p, bool noting, bool *gain,
                       ort_error *err)
{
    region r = {.c = c, .graph = c->graph};
    ort_status status = begin(&r) && seed(&r, p) && grow(&r)
                            ? ORT_OK
                            : ort_error_memory(err, c->graph->values.count * sizeof(ort_id));
    if (!status && noting)
        note_region(&r, p);
    else if (!status && r.members.count)
        status = decide(&r, gain, err);
    if (!status && *gain)
        status = rewrite(&r, err);
    release(&r);
    return status;
}

/* One sweep over the permutations of the graph, up to the first gain; noting: for what they stay,
 * each by itself, since a Transpose is told of once. */
static ort_status sweep(ort_pass_context *c, bool noting, bool *gain, ort_error *err)
{
    ORT_VEC(ort_perm) tried = {0};
    ort_status status = ORT_OK;
    ort_node *node;
    ORT_EACH_NODE(c->graph, node)
    {
        ort_perm p, both[2];
        bool new_one = is_transpose(c->graph, node, &p);
        for (size_t i = 0; i < tried.count && new_one; i++)
            new_one = !ort_perm_equal(&tried.data[i], &p);
        if (!new_one || tried.count > MAX_PERMS)
            continue;
        both[0] = p;
        both[1] = ort_perm_inverse(&p);
        for (int i = 0; i < (noting ? 1 : 2) && !status && !*gain; i++) {
            if (i && ort_perm_equal(&both[0], &both[1]))
                break;
            status = ort_vec_push(&tried, both[i]) ? push(c, &both[i], noting, gain, err)
                                                   : ort_error_memory(err, sizeof p);
        }
        if (status || *gain)
            break; /* the graph is another one now: the next sweep goes on */
    }
    ort_vec_release(&tried);
    return status;
}

static ort_status apply(ort_pass_context *c, int *changes_made, ort_error *err)
{
    bool gain = false;
    ORT_TRY(sweep(c, false, &gain, err));
    *changes_made += gain;
    return gain || !c->near_misses ? ORT_OK : sweep(c, true, &gain, err);
}

const ort_pass ort_pass_push_transposes = {
    .name = "push_transposes",
    .level = 1,
    .doc = "regions run in another layout where that saves Transposes",
    .apply = apply,
};
