/* heads.c - steps through Transposes, Reshapes and factors (heads.h). */
#pragma GCC optimize("Os") /* once a session or less */
#include "pass/attention/heads.h"

#include <math.h>

#include "pass/facts/facts.h"
#include "pass/facts/perm.h"
#include "pass/facts/reshape_groups.h"

enum { STEPS = 8 };

static const ort_heads none = {.id = ORT_ID_NONE};

/* ---- how a value lies */

/* The letters of the next axis of "b h s d", and where the one after it begins; NULL: no more. */
static const char *next_axis(const char *lie, char letters[8])
{
    int count = 0;
    if (!*lie || *lie == '|')
        return NULL;
    for (; *lie && *lie != ' ' && *lie != '|'; lie++)
        letters[count++] = *lie;
    letters[count] = '\0';
    return lie + (*lie == ' ');
}

ort_heads ort_heads_at(const ort_graph *graph, ort_id id, const char *lie, bool scaled)
{
    const ort_type *type = ort_fact_type(graph, id);
    ort_heads heads = {.id = id, .lie = lie, .count = ort_dim_unknown(), .size = ort_dim_unknown(),
                       .scaled = scaled, .factor = 1};
    int rank = 0;
    for (char letters[8]; (lie = next_axis(lie, letters)); rank++) {
        if (type->kind != ORT_TYPE_TENSOR || rank >= type->rank)
            return none;
        if (!ort_dim_is(type->dim[rank], 1))
            memcpy(heads.axis[rank], letters, sizeof letters);
        if (!strcmp(letters, "h"))
            heads.count = type->dim[rank];
        if (!strcmp(letters, "d"))
            heads.size = type->dim[rank];
    }
    return rank == type->rank ? heads : none;
}

static bool has_letter(const ort_heads *heads, int rank, char letter)
{
    for (int d = 0; d < rank; d++)
        if (strchr(heads->axis[d], letter))
            return true;
    return false;
}

/* Copies the letters that aren't in `but`. */
static void copy_without(char *to, const char *from, const char *but)
{
    for (; *from; from++)
        if (!strchr(but, *from))
            *to++ = *from;
    *to = '\0';
}

/* Letters that stand for 1: no axis has them, or they are wanted on an axis of 1. */
static bool find_ones(const ort_type *type, const ort_heads *heads, const char *lie, char ones[16])
{
    int rank = 0, count = 0;
    for (char letters[8]; (lie = next_axis(lie, letters)); rank++)
        for (const char *at = letters; *at && rank < type->rank; at++)
            if (ort_dim_is(type->dim[rank], 1) || !has_letter(heads, type->rank, *at))
                ones[count++] = *at;
    ones[count] = '\0';
    return rank == type->rank;
}

static bool has_letters(const ort_type *type, const ort_heads *heads, const char *lie)
{
    char ones[16], wanted[8], have[8], letters[8];
    if (type->kind != ORT_TYPE_TENSOR || !find_ones(type, heads, lie, ones))
        return false;
    for (int d = 0; d < type->rank; d++) {
        lie = next_axis(lie, letters);
        copy_without(wanted, letters, ones);
        copy_without(have, heads->axis[d], ones);
        if (strcmp(wanted, have) || (!*have && !ort_dim_is(type->dim[d], 1)))
            return false;
    }
    return true;
}

/* Known now, or the same as it was known before. */
static bool learn(ort_dim *dim, ort_dim now)
{
    if (dim->expr != ORT_DIM_UNKNOWN)
        return ort_dim_equal(*dim, now);
    *dim = now;
    return true;
}

/* Heads and elements on one axis. */
static bool learn_both(ort_heads *heads, ort_dim width)
{
    ort_dim size = heads->size;
    if (!ort_dim_known(width) || !ort_dim_known(size))
        return heads->count.expr != ORT_DIM_UNKNOWN;
    return size.size > 0 && width.size % size.size == 0 &&
           learn(&heads->count, ort_dim_of(width.size / size.size));
}

/* Does it lie so? Then the axes tell how many heads there are, and of how many elements. */
static bool settle(const ort_type *type, ort_heads *heads, const char *lie)
{
    ort_heads settled = *heads;
    settled.lie = lie;
    bool fits = has_letters(type, heads, lie);
    char letters[8];
    for (int d = 0; fits && d < type->rank; d++) {
        lie = next_axis(lie, letters);
        fits = !strcmp(letters, "h")    ? learn(&settled.count, type->dim[d])
               : !strcmp(letters, "d")  ? learn(&settled.size, type->dim[d])
               : !strcmp(letters, "hd") ? learn_both(&settled, type->dim[d])
                                        : true;
    }
    if (fits)
        *heads = settled;
    return fits;
}

static bool settle_any(const ort_graph *graph, ort_heads *heads, const char *lies)
{
    const ort_type *type = ort_fact_type(graph, heads->id);
    for (; lies; lies = strchr(lies, '|')) {
        lies += *lies == '|';
        if (settle(type, heads, lies))
            return true;
    }
    return false;
}

/* ---- steps */

int ort_heads_factor(const ort_graph *graph, const ort_node *node, double *factor)
{
    if (ort_edit_is(node, ONNX, "Mul"))
        for (int slot = 0; slot < 2; slot++)
            if (ort_fact_number(graph, node, 1 - slot, factor))
                return slot;
    if (!ort_edit_is(node, ONNX, "Div") || !ort_fact_number(graph, node, 1, factor))
        return -1;
    *factor = 1 / *factor;
    return 0;
}

static ort_heads unscaled(const ort_graph *graph, ort_heads heads, const ort_node *node)
{
    double factor;
    int slot = heads.scaled ? ort_heads_factor(graph, node, &factor) : -1;
    if (slot < 0 || !isfinite(factor) || !(factor > 0) ||
        ort_fact_type(graph, node->inputs[slot])->rank != ort_fact_type(graph, heads.id)->rank)
        return none;
    heads.id = node->inputs[slot];
    heads.factor *= factor;
    return heads;
}

static ort_heads turned(const ort_graph *graph, const ort_heads *from, const ort_node *node,
                        bool back)
{
    ort_perm p;
    ort_heads heads = *from;
    if (!ort_perm_of_node(graph, node, &p))
        return none;
    heads.id = back ? node->inputs[0] : node->outputs[0];
    for (int i = 0; i < p.rank; i++)
        memcpy(heads.axis[back ? p.to[i] : i], from->axis[back ? i : p.to[i]],
               sizeof heads.axis[0]);
    return heads;
}

/* The letters of a group of axes, `from` of them, over the axes of the same elements: two letters
 * of one axis part, and heads leave the batch for their elements. */
static bool deal(const char *letters, int from, const int *axes, int count, ort_heads *made)
{
    size_t length = strlen(letters), first = length;
    if (count == 2 && ((length == 2 && from == 1) || !strcmp(letters, "bhd")))
        first = 1;
    else if (count != 1 || length >= sizeof made->axis[0])
        return false;
    memcpy(made->axis[axes[0]], letters, first);
    if (count == 2)
        memcpy(made->axis[axes[1]], letters + 1, length - 1);
    return true;
}

static ort_heads reshaped(const ort_graph *graph, const ort_heads *from, ort_id to)
{
    ort_groups groups;
    ort_heads made = *from;
    made.id = to;
    memset(made.axis, 0, sizeof made.axis);
    if (!ort_groups_of(graph->model->dims, ort_fact_type(graph, from->id),
                       ort_fact_type(graph, to), &groups))
        return none;
    for (int k = 0; k < groups.count; k++) {
        char letters[8 * ORT_MAX_RANK] = "";
        int axes[ORT_MAX_RANK], count = 0, had = 0;
        for (int i = 0; i < groups.in.rank; had += groups.in.of[i++] == k)
            if (groups.in.of[i] == k)
                copy_without(letters + strlen(letters), from->axis[i], "");
        for (int i = 0; i < groups.out.rank; i++)
            if (groups.out.of[i] == k)
                axes[count++] = i;
        if (!deal(letters, had, axes, count, &made))
            return none;
    }
    return made;
}

static ort_heads step_back(const ort_graph *graph, const ort_heads *from)
{
    const ort_node *node = ort_edit_producer(graph, from->id);
    if (ort_edit_is(node, ONNX, "Transpose"))
        return turned(graph, from, node, true);
    if (ort_node_has_trait(node, ORT_TRAIT_ALIAS))
        return reshaped(graph, from, node->inputs[0]);
    return unscaled(graph, *from, node);
}

ort_heads ort_heads_back(const ort_graph *graph, ort_heads from, const char *lies)
{
    for (int i = 0; i < STEPS && from.id != ORT_ID_NONE; i++) {
        if (settle_any(graph, &from, lies)) {
            ort_heads next = from;
            while (next.id != ORT_ID_NONE) {
                from = next;
                next = unscaled(graph, from, ort_edit_producer(graph, from.id));
            }
            return from;
        }
        from = step_back(graph, &from);
    }
    return none;
}

static ort_heads step_forth(const ort_graph *graph, const ort_heads *from)
{
    const ort_node *node = ort_edit_only_reader(graph, from->id);
    if (!node || node->inputs[0] != from->id)
        return none;
    if (ort_edit_is(node, ONNX, "Transpose"))
        return turned(graph, from, node, false);
    return ort_node_has_trait(node, ORT_TRAIT_ALIAS) ? reshaped(graph, from, node->outputs[0])
                                                     : none;
}

ort_heads ort_heads_forth(const ort_graph *graph, ort_heads from, const char *lies)
{
    for (int i = 0; i < STEPS && from.id != ORT_ID_NONE; i++) {
        if (settle_any(graph, &from, lies))
            return from;
        from = step_forth(graph, &from);
    }
    return none;
}
