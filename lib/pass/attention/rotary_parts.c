/* rotary_parts.c - reading how a rotation takes x apart and puts it together (rotary_parts.h): in
 * halves, or in pairs by steps of 2 or as parts of [..., D/2, 2].
 */
#include "pass/attention/rotary_parts.h"

#include "pass/attention/heads.h"
#include "pass/facts/facts.h"
#include "pass/facts/slice_cut.h"

/* Every `step`-th element of the last axis from `start` on, `count` of them. */
static bool takes(const ort_graph *graph, const ort_part *p, int64_t start, int64_t step,
                  int64_t count)
{
    return p->axis == ort_fact_type(graph, p->of)->rank - 1 && !p->taken && p->start == start &&
           p->step == step && (p->end - start + step - 1) / step == count;
}

static bool concatenates_last(const ort_graph *graph, const ort_node *concat)
{
    return ort_fact_along_last(concat, ort_fact_type(graph, concat->outputs[0])->rank);
}

const char *ort_rotary_check_parts(const ort_graph *graph, const ort_match *m, ort_id of,
                                   int64_t half)
{
    const ort_type *type = ort_fact_type(graph, of);
    ort_part l = ort_part_of(graph, ort_match_value(m, "l"));
    ort_part h = ort_part_of(graph, ort_match_value(m, "h"));
    if (!concatenates_last(graph, ort_match_node(m, "k")))
        return "the parts aren't put together along the last axis";
    if (l.of != of || h.of != of || !takes(graph, &l, 0, 1, half) ||
        !takes(graph, &h, half, 1, type->dim[type->rank - 1].size - half))
        return ort_edit_is(ort_edit_producer(graph, ort_match_value(m, "l")), ONNX, "Split")
                   ? "it isn't split into these parts" : "it isn't sliced into these parts";
    return NULL;
}

/* ---- halves */

/* x is one of the factors that are added to the others turned. */
static ort_id rotated(const ort_graph *graph, const ort_match *m)
{
    ort_id of = ort_part_of(graph, ort_match_value(m, "h")).of, cos = ort_match_value(m, "cos");
    return of == cos ? cos : ort_match_value(m, "x");
}

static const char *read_halves(const ort_graph *graph, const ort_match *m, ort_rotation *r)
{
    r->x = rotated(graph, m);
    if (r->x == r->cos)
        r->cos = ort_match_value(m, "x");
    r->type = *ort_fact_type(graph, r->x);
    if (!ort_fact_ranked(graph, r->x, 4) || !ort_dim_known(r->type.dim[3]))
        return "what is rotated doesn't have four dimensions";
    int64_t size = r->type.dim[3].size;
    return size % 2 ? "the halves aren't of the same size"
                    : ort_rotary_check_parts(graph, m, r->x, size / 2);
}

/* ---- pairs, and tables of one number for each */

/* x of [..., D/2, 2]: [B,?,?,D], or [B,S,H*D] alone. */
static bool read_paired(const ort_graph *graph, ort_id paired, ort_rotation *r)
{
    ort_heads from = ort_heads_at(graph, paired, "b x y e p", false);
    ort_heads x = ort_heads_back(graph, from, "b x y ep|b x yep");
    r->type = *ort_fact_type(graph, paired);
    if (x.id == ORT_ID_NONE || !ort_dim_known(r->type.dim[3]) || !ort_dim_is(r->type.dim[4], 2))
        return false;
    r->type.rank = 4;
    r->type.dim[3] = ort_dim_of(2 * r->type.dim[3].size);
    *(ort_fact_ranked(graph, x.id, 3) ? &r->joined : &r->x) = x.id;
    return true;
}

/* What the two values are the halves of each pair of; false: of nothing. */
static bool read_parts(const ort_graph *graph, ort_id low, ort_id high, ort_rotation *r)
{
    ort_part l = ort_part_of(graph, low), h = ort_part_of(graph, high);
    r->x = r->joined = ORT_ID_NONE;
    if (l.of == ORT_ID_NONE || l.of != h.of)
        return false;
    if (l.taken || h.taken)
        return r->pairs && l.taken && h.taken && l.start == 0 && h.start == 1 && l.axis == 4 &&
               h.axis == 4 && read_paired(graph, l.of, r);
    r->x = l.of;
    r->type = *ort_fact_type(graph, r->x);
    if (!ort_fact_ranked(graph, r->x, 4) || !ort_dim_known(r->type.dim[3]))
        return false;
    int64_t half = r->type.dim[3].size / 2, step = r->pairs ? 2 : 1;
    return takes(graph, &l, 0, step, half) && takes(graph, &h, r->pairs ? 1 : half, step, half);
}

/* The result has the shape of x, its parts side by side again. */
static bool is_put_together(const ort_graph *graph, const ort_match *m, const ort_rotation *r)
{
    const ort_type *out = ort_fact_type(graph, m->nodes[0]->outputs[0]);
    const ort_node *concat = ort_match_node(m, "k");
    const ort_type *wide = ort_fact_type(graph, concat->outputs[0]);
    if (!concatenates_last(graph, concat) || !ort_facts_same_shape(out, &r->type) ||
        wide->rank != 4 + r->pairs)
        return false;
    for (int d = 0; r->pairs && d < 3; d++)
        if (!ort_dim_equal(wide->dim[d], r->type.dim[d]))
            return false;
    return !r->pairs || ort_dim_is(wide->dim[4], 2);
}

/* x itself is read, too: as it is, or where it was parted of [B,S,H*D]. */
static bool finds_itself(const ort_graph *graph, ort_id x, ort_rotation *r)
{
    const ort_node *reshape = ort_edit_producer(graph, x);
    bool same = r->x == x || (r->joined != ORT_ID_NONE && ort_edit_is(reshape, ONNX, "Reshape") &&
                              reshape->inputs[0] == r->joined);
    if (same)
        r->x = x;
    return same;
}

static const char *read_pairs(const ort_graph *graph, const ort_match *m, ort_rotation *r)
{
    bool once = r->spread == ORT_ROTARY_ONCE;
    ort_id l = ort_match_value(m, "l"), h = ort_match_value(m, "h");
    if (!read_parts(graph, l, h, r)) {
        if (!once || !read_parts(graph, r->cos, r->sin, r))
            return "what is rotated isn't parted into the two elements of each pair";
        r->cos = l; /* the factors stood the other way round */
        r->sin = h;
    }
    if (!is_put_together(graph, m, r))
        return "the parts aren't put together as they were";
    ort_id x = once ? ORT_ID_NONE : ort_match_value(m, "x");
    if (!once && !finds_itself(graph, x, r)) {
        if (!finds_itself(graph, r->cos, r))
            return "what is rotated isn't what it is added to";
        r->cos = x;
    }
    return r->type.dim[3].size % 2 ? "the halves aren't of the same size" : NULL;
}

const char *ort_rotary_read_parts(const ort_graph *graph, const ort_match *m, ort_rotation *r)
{
    bool once = m->flags & ORT_FORM_ONCE, pairs = m->flags & ORT_FORM_PAIRS;
    *r = (ort_rotation){.spread = once    ? ORT_ROTARY_ONCE
                                  : pairs ? ORT_ROTARY_PAIRS
                                          : ORT_ROTARY_HALVES,
                        .pairs = pairs, .joined = ORT_ID_NONE,
                        .cos = ort_match_value(m, "cos"), .sin = ort_match_value(m, "sin")};
    return once || pairs ? read_pairs(graph, m, r) : read_halves(graph, m, r);
}
