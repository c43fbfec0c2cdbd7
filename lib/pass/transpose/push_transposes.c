/* push_transposes.c - regions of operators run in another layout where that saves Transposes.
 *
 *     NHWC:  Transpose -> Conv -> Transpose -> Add c -> Relu -> Transpose -> Conv -> Transpose
 *     NCHW:  Transpose -> Conv -> Add c' -> Relu -> Conv -> Transpose
 *
 * For a permutation p, a region are the operators around Transposes by p and its inverse that give
 * the same when their data lies permuted (transpose_region.c, transpose_rules.c). Each of them may
 * stay or change (transpose_cut.c); a value needed in both layouts costs a Transpose, once, whoever
 * needs it; constants are laid anew. Nothing changes without a gain, so that a second run finds
 * nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/constants.h"
#include "pass/transpose/transpose_region.h"

typedef struct rewriting {
    const ort_region *region;
    ort_graph *graph;
    bool *changes;   /* by vertex */
    ort_id *flipped; /* by value id: the permuted value, or ORT_ID_NONE */
} rewriting;

/* The name of its result, but where what it reads is called so: tf2onnx calls a node after its
 * result, and two of one name are refused elsewhere. */
static const char *name_of(const rewriting *w, ort_id in, ort_id out)
{
    const ort_node *before = ort_edit_producer(w->graph, in);
    const char *name = w->graph->values.data[out]->name;
    return before && !strcmp(before->name, name) ? w->graph->values.data[in]->name : name;
}

static ort_status add_transpose(const rewriting *w, ort_id in, const ort_perm *p,
                                const ort_node *origin, ort_id *out, ort_error *err)
{
    int64_t list[ORT_MAX_RANK];
    ort_attr perm = ort_perm_attr(p, list);
    if (*out == ORT_ID_NONE)
        *out = ort_graph_add_value(w->graph, w->graph->values.data[in]->name);
    if (*out == ORT_ID_NONE)
        return ort_error_memory(err, sizeof perm);
    ort_node_spec spec = {.domain = ONNX, .op_type = "Transpose",
                          .name = name_of(w, in, *out), .inputs = &in,
                          .input_count = 1, .outputs = out, .output_count = 1, .set = &perm,
                          .set_count = 1, .origin = origin ? ort_edit_origin_of(origin) : NULL};
    return ort_edit_add_node(w->graph, &spec, NULL, err);
}

/* The value as its permuted readers want it. */
static ort_status flip(rewriting *w, ort_id id, const ort_perm *p, ort_id *made, ort_error *err)
{
    ort_node *producer = ort_edit_producer(w->graph, id);
    ort_perm inverse = ort_perm_inverse(p), have;
    *made = id < w->region->value_count ? w->flipped[id] : ORT_ID_NONE;
    if (*made != ORT_ID_NONE)
        return ORT_OK;
    if (ort_perm_is_identity(p)) {
        *made = id;
        return ORT_OK;
    }
    if (ort_constant_moves(w->graph, id)) /* one per reader: they are merged later */
        return ort_constant_permuted(w->graph, id, p, made, err);
    ort_id source = id;
    ort_perm whole = inverse;
    if (ort_region_transpose(w->graph, producer, &have)) {
        source = producer->inputs[0];
        whole = ort_perm_then(&have, &inverse);
        if (source < w->region->value_count && w->flipped[source] != ORT_ID_NONE) {
            whole = ort_perm_then(ort_region_perm(w->region, source), &whole);
            source = w->flipped[source];
        }
    }
    *made = ort_perm_is_identity(&whole) ? source : ORT_ID_NONE;
    if (*made == ORT_ID_NONE)
        ORT_TRY(add_transpose(w, source, &whole, producer, made, err));
    w->flipped[id] = *made;
    return ORT_OK;
}

/* The values that the node in its form computes; those that lie as they did are the same. */
static ort_status outputs_of(rewriting *w, const ort_member *m, ort_id *ids, ort_error *err)
{
    const ort_node *node = m->node;
    bool same = ort_perm_is_identity(&m->form.out);
    for (int i = 0; i < node->output_count; i++) {
        ort_id id = ids[i] = node->outputs[i];
        if (id == ORT_ID_NONE || same || !ort_output_permuted(node, i))
            continue;
        ids[i] = ort_graph_add_value(w->graph, w->graph->values.data[id]->name);
        if (ids[i] == ORT_ID_NONE)
            return ort_error_memory(err, sizeof *ids);
        w->flipped[id] = ids[i];
    }
    return ORT_OK;
}

static ort_status rewrite_member(rewriting *w, const ort_member *m, ort_error *err)
{
    ort_node *node = m->node;
    int ins = node->input_count, outs = node->output_count;
    ort_id *ids = malloc((size_t)(ins + outs) * sizeof *ids);
    ort_status status = ids ? ORT_OK : ort_error_memory(err, sizeof *ids * (size_t)(ins + outs));
    for (int i = 0; i < ins && status == ORT_OK; i++) {
        ids[i] = ORT_ID_NONE;
        if (ort_slot_permuted(w->graph, node, i))
            status = flip(w, node->inputs[i], &m->form.in, &ids[i], err);
    }
    if (status == ORT_OK)
        status = outputs_of(w, m, ids + ins, err);
    if (status == ORT_OK) {
        ort_graph_remove_node(w->graph, node);
        status = ort_add_permuted(w->region->c, node, &m->form, ids, ids + ins, err);
    }
    free(ids);
    return status;
}

/* Transposes read what lies permuted now. */
static ort_status redirect(const rewriting *w, ort_id id, ort_error *err)
{
    ort_readers readers = ort_readers_of(w->graph, id);
    ort_node *node;
    while ((node = ort_readers_next(&readers))) {
        ort_perm have, whole;
        int64_t list[ORT_MAX_RANK];
        if (!ort_region_transpose(w->graph, node, &have) || node->inputs[0] != id ||
            node->outputs[0] == w->flipped[id])
            continue;
        whole = ort_perm_then(ort_region_perm(w->region, id), &have);
        if (ort_edit_producer(w->graph, id) && !ort_perm_is_identity(&whole))
            continue; /* as good as it is */
        ort_attr perm = ort_perm_attr(&whole, list);
        ort_node_set_input(w->graph, node, 0, w->flipped[id]);
        ORT_TRY(ort_edit_set_attr(w->graph, node, &perm, err));
        if (ort_perm_is_identity(&whole) && !w->graph->values.data[node->outputs[0]]->is_output)
            (void)ort_edit_bypass(w->graph, node, 0);
    }
    return ORT_OK;
}

/* Transposes that nobody reads any more would count as if somebody did. */
static void drop_unread(const rewriting *w)
{
    for (size_t i = 0; i < w->region->values.count; i++) {
        const ort_graph_value *value = w->graph->values.data[w->region->values.data[i]];
        ort_node *producer = ort_edit_producer(w->graph, w->region->values.data[i]);
        if (!value->use_count && !value->is_output &&
            ort_region_transpose(w->graph, producer, NULL))
            ort_graph_remove_node(w->graph, producer);
    }
}

static ort_status rewrite(rewriting *w, ort_error *err)
{
    size_t count = w->graph->order.count;
    for (size_t i = 0; i < count; i++) { /* producers first */
        ort_node *node = w->graph->nodes.data[w->graph->order.data[i]];
        const ort_member *member = node->removed ? NULL : ort_region_member(w->region, node);
        if (member && w->changes[member->vertex])
            ORT_TRY(rewrite_member(w, member, err));
    }
    for (size_t i = 0; i < w->region->values.count; i++) {
        ort_id id = w->region->values.data[i];
        if (w->flipped[id] == ORT_ID_NONE)
            continue;
        ORT_TRY(redirect(w, id, err));
        const ort_graph_value *value = w->graph->values.data[id];
        if (w->graph->producers.data[id] == ORT_ID_NONE && !value->is_input &&
            value->outer == ORT_ID_NONE && !value->fact.value && value->use_count > 0)
            ORT_TRY(add_transpose(w, w->flipped[id], ort_region_perm(w->region, id), NULL, &id,
                                  err));
    }
    drop_unread(w);
    return ORT_OK;
}

/* ---- one permutation after the other */

/* A neighbour of this Transpose that isn't of the region; or NULL. */
static const ort_node *border(const ort_region *r, const ort_node *transpose)
{
    const ort_node *node = ort_edit_producer(r->graph, transpose->inputs[0]);
    ort_readers readers = ort_readers_of(r->graph, transpose->outputs[0]);
    for (; node || (node = ort_readers_next(&readers)); node = NULL)
        if (!ort_region_member(r, node) && !ort_region_transpose(r->graph, node, NULL))
            return node;
    return NULL;
}

/* Why Transposes by p stay. */
static void note_region(const ort_region *r, const ort_perm *p)
{
    char label[160];
    ort_perm have;
    ort_node *node;
    ORT_EACH_NODE(r->graph, node)
    {
        if (!ort_region_transpose(r->graph, node, &have) || !ort_perm_equal(&have, p))
            continue;
        const ort_node *at = border(r, node);
        if (at)
            ort_pass_note(r->c, node, "%s doesn't run in another layout",
                          ort_node_label(at, label, sizeof label));
        else
            ort_pass_note(r->c, node, "around it the other layout takes as many Transposes");
    }
}

/* Rewrites the region where that gains something. */
static ort_status improve(ort_region *region, bool *gain, ort_error *err)
{
    size_t count = region->value_count + 1;
    rewriting w = {.graph = region->graph};
    ort_status status = ort_region_decide(region, &w.changes, gain, err);
    if (status == ORT_OK && *gain) {
        w.flipped = malloc(count * sizeof *w.flipped);
        status = w.flipped ? ORT_OK : ort_error_memory(err, count * sizeof *w.flipped);
    }
    if (status == ORT_OK && *gain) {
        memset(w.flipped, 0xff, count * sizeof *w.flipped);
        w.region = region;
        status = rewrite(&w, err);
    }
    free(w.flipped);
    free(w.changes);
    return status;
}

/* Improves the region of p; or (noting) tells why it can't. */
static ort_status push(ort_pass_context *c, const ort_perm *p, bool noting, bool *gain,
                       ort_error *err)
{
    ort_region region;
    ort_status status = ort_region_find(&region, c, p)
                            ? ORT_OK
                            : ort_error_memory(err, c->graph->values.count * sizeof(ort_id));
    if (status == ORT_OK && noting)
        note_region(&region, p);
    else if (status == ORT_OK && region.members.count)
        status = improve(&region, gain, err);
    ort_region_release(&region);
    return status;
}

/* One sweep over the permutations of the graph, up to the first gain; noting: for what they stay,
 * each by itself, since a Transpose is told of once. */
static ort_status sweep(ort_pass_context *c, bool noting, bool *gain, ort_error *err)
{
    ORT_VEC(ort_perm) tried = {0};
    ort_status status = ORT_OK;
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_perm p, both[2];
        bool new_one = ort_region_transpose(c->graph, node, &p);
        for (size_t i = 0; i < tried.count && new_one; i++)
            new_one = !ort_perm_equal(&tried.data[i], &p);
        if (!new_one || tried.count > ORT_REGION_PERMS)
            continue;
        both[0] = p;
        both[1] = ort_perm_inverse(&p);
        for (int i = 0; i < (noting ? 1 : 2) && status == ORT_OK && !*gain; i++) {
            if (i && ort_perm_equal(&both[0], &both[1]))
                break;
            status = ort_vec_push(&tried, both[i]) ? push(c, &both[i], noting, gain, err)
                                                   : ort_error_memory(err, sizeof p);
        }
        if (status != ORT_OK || *gain)
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
