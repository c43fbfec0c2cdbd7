/* transpose_cut.c - which operators of a region change their layout: a minimal cut, which is the
 * best choice for the whole region. The number of Transposes counts first, the bits that they move
 * second.
 *
 *     stays | changes             source, vertices of operators | sink
 *     v computed by P, read by C, costs w:   P -w-> a, a -> C     P stays, some C changes
 *                                            C -> b, b -w-> P     P changes, some C stays
 *     P costs e nodes when it changes:       source -e-> P
 *
 * A Transpose y = Transpose(x) may have x and y in one region. Then y permuted is x again, which no
 * cut can express. So y is charged in one of two ways: as made from x, which must then be there
 * unpermuted, or as x permuted. Neither promises more than it saves. The region is cut four times,
 * and the best cut wins: with all such y one way, all the other way, and alternating from either
 * (if p is its own inverse, the first Transpose enters what the second one leaves).
 */
#include <stdlib.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/min_cut.h"
#include "graph/uses.h"
#include "pass/facts/facts.h"
#include "pass/transpose/transpose_region.h"

enum { SOURCE = 0, SINK = 1 };

enum { TO_RESULT, TO_SOURCE, BY_TURNS, BY_OTHER_TURNS, WAYS };

#define ONE_TRANSPOSE ((int64_t)1 << 48) /* more than all bits that a model moves */
#define ONE_NODE (ONE_TRANSPOSE + 64)    /* any other: no gain of its own */

typedef struct cutting {
    const ort_region *r;
    ort_graph *graph;
    ort_min_cut cut;
    uint32_t *vertex; /* by member */
    int way;      /* how a Transpose inside of the region is charged, one of WAYS... */
    bool inside;  /* ...if there is one */
    bool *second; /* by node id, of Transposes: an even number of them are before it; or NULL */
    int64_t now;  /* cost as it is */
} cutting;

static int64_t weight(const cutting *x, ort_id id)
{
    const ort_type *type = ort_fact_type(x->graph, id);
    int64_t bits = type->dtype ? ort_dtype_get(type->dtype)->bits : 32;
    for (int i = 0; i < type->rank && bits < ONE_TRANSPOSE; i++)
        if (!ort_mul_i64(bits, ort_dim_known(type->dim[i]) ? type->dim[i].size : 16, &bits))
            bits = ONE_TRANSPOSE;
    int64_t most = ONE_TRANSPOSE >> 12;
    return ONE_TRANSPOSE + (bits < most ? bits : most);
}

/* Is this Transpose charged to its source? */
static bool as_source(const cutting *x, const ort_node *node)
{
    if (x->way <= TO_SOURCE)
        return x->way == TO_SOURCE;
    return x->second[node->id] == (x->way == BY_TURNS);
}

/* What a reader of `id` asks for: a vertex of its own, SOURCE: as it is, SINK: permuted,
 * UINT32_MAX: it is a Transpose that reads either. */
static uint32_t wants(cutting *x, ort_id id, const ort_node *node)
{
    const ort_member *member = ort_region_member(x->r, node);
    if (member)
        return member->vertex;
    if (!ort_region_transpose(x->graph, node, NULL))
        return SOURCE;
    bool undo = ort_region_undoes(x->r, node), make = ort_region_makes(x->r, node);
    x->inside = x->inside || (undo && make);
    if (undo && make)
        return as_source(x, node) ? SINK : SOURCE;
    return undo ? SINK : make ? SOURCE : UINT32_MAX;
}

typedef struct costs { /* of having a value one way or the other, beside its producer */
    uint32_t producer; /* vertex; SOURCE: it comes as it is; UINT32_MAX: a Transpose gives it */
    int64_t as_is, permuted;
} costs;

static costs costs_of(const cutting *x, ort_id id)
{
    ort_node *node = ort_edit_producer(x->graph, id);
    int64_t w = weight(x, id);
    const ort_member *member = ort_region_member(x->r, node);
    if (member)
        return (costs){member->vertex, w, w};
    if (!ort_region_transpose(x->graph, node, NULL))
        return (costs){SOURCE, 0, w};
    bool undo = ort_region_undoes(x->r, node), make = ort_region_makes(x->r, node);
    if (undo && make) /* what the source is charged for costs nothing here */
        return (costs){UINT32_MAX, as_source(x, node) ? 0 : w, as_source(x, node) ? w : 0};
    return (costs){UINT32_MAX, undo ? 0 : w, make ? 0 : w};
}

static bool add_value(cutting *x, ort_id id)
{
    ort_min_cut *cut = &x->cut;
    const ort_graph_value *value = x->graph->values.data[id];
    costs k = costs_of(x, id);
    bool fed = k.producer == UINT32_MAX, stays = value->is_output, asked = false;
    uint32_t a = ort_min_cut_vertex(cut), b = ort_min_cut_vertex(cut);
    bool ok = a != UINT32_MAX && b != UINT32_MAX &&
              ort_min_cut_edge(cut, fed ? SOURCE : k.producer, a, k.permuted) &&
              ort_min_cut_edge(cut, b, fed ? SINK : k.producer, k.as_is);
    ort_readers readers = ort_readers_of(x->graph, id);
    const ort_node *node;
    while (ok && (node = ort_readers_next(&readers))) {
        uint32_t vertex = wants(x, id, node);
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
    x->now += (asked ? k.permuted : 0) + (fed && stays ? k.as_is : 0);
    return ok;
}

/* The cheapest choice of one way to charge; *gain: by how much it is better. */
static bool choose(cutting *x, bool **changes, int64_t *gain)
{
    int64_t best;
    ort_min_cut_release(&x->cut);
    x->now = 0;
    bool ok = ort_min_cut_vertex(&x->cut) == SOURCE && ort_min_cut_vertex(&x->cut) == SINK;
    for (size_t i = 0; i < x->r->members.count && ok; i++) {
        ort_member *m = &x->r->members.data[i];
        m->vertex = ort_min_cut_vertex(&x->cut);
        ok = m->vertex != UINT32_MAX &&
             (!m->form.extra ||
              ort_min_cut_edge(&x->cut, SOURCE, m->vertex, m->form.extra * ONE_NODE));
    }
    for (size_t i = 0; i < x->r->values.count && ok; i++)
        ok = add_value(x, x->r->values.data[i]);
    *changes = ok ? calloc(x->cut.heads.count, sizeof **changes) : NULL;
    if (!*changes || !ort_min_cut_run(&x->cut, *changes, &best))
        return false;
    *gain = x->now - best;
    return true;
}

/* Which Transposes are the second, fourth ... on the longest way to them; false: no memory. */
static bool number_turns(cutting *x)
{
    size_t nodes = x->graph->nodes.count, values = x->graph->values.count;
    int *before = calloc(values + 1, sizeof *before);
    x->second = calloc(nodes + 1, sizeof *x->second);
    ort_node *node;
    ORT_EACH_NODE(x->graph, node)
    {
        int most = 0;
        for (int i = 0; before && x->second && i < node->input_count; i++)
            if (node->inputs[i] != ORT_ID_NONE && before[node->inputs[i]] > most)
                most = before[node->inputs[i]];
        if (!before || !x->second)
            break;
        bool turns = ort_region_transpose(x->graph, node, NULL) &&
                     ort_region_undoes(x->r, node) && ort_region_makes(x->r, node);
        x->second[node->id] = turns && most % 2;
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != ORT_ID_NONE)
                before[node->outputs[i]] = most + turns;
    }
    free(before);
    return before && x->second;
}

ort_status ort_region_decide(ort_region *r, bool **changes, bool *gain, ort_error *err)
{
    cutting x = {.r = r, .graph = r->graph};
    int64_t best = 0;
    bool ok = choose(&x, changes, &best);
    if (ok && x.inside)
        ok = number_turns(&x);
    for (x.way = TO_SOURCE; ok && x.inside && x.way < WAYS; x.way++) {
        int64_t other_gain = 0;
        bool *other = NULL;
        ok = choose(&x, &other, &other_gain);
        if (ok && other_gain > best) {
            bool *swap = *changes;
            *changes = other;
            other = swap;
            best = other_gain;
        }
        free(other);
    }
    *gain = best > 0;
    if (!ok)
        (void)ort_error_memory(err, x.cut.edges.count * sizeof(ort_cut_edge));
    ort_min_cut_release(&x.cut);
    free(x.second);
    return ok ? ORT_OK : ORT_ERROR_MEMORY;
}
