/* opencl_attention_parts.c - what the operators of attention of com.microsoft share: heads that are
 * turned or have a bias, masks in many forms.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "provider/opencl/sequence/opencl_attention.h"

ort_cl_matrix ort_cl_take_heads(ort_cl_step *s, const ort_cl_heads *h, ort_cl_matrix from,
                                int64_t heads, int64_t rows, int64_t size, const ort_cl_taking *t)
{
    const int64_t grid[3] = {heads, rows, h->batch};
    bool bias = t->bias >= 0, turns = t->half_size > 0, given = turns && t->positions >= 0;
    int fault = from.buffer, code = 0, to = ort_cl_scratch(s, h->batch * heads * rows * size);
    if (turns)
        code = ort_cl_checks(s, 0, t->table_rows, &fault);
    ort_cl_launch_grid(s, "attention", "take_heads", grid, NULL, "bbbbbbbbiiiiiiiiiiiiiiii",
                       from.buffer, bias ? ort_cl_read(s, t->bias) : from.buffer,
                       turns ? t->cosines : from.buffer, turns ? t->sines : from.buffer,
                       given ? ort_cl_read(s, t->positions) : from.buffer,
                       h->has_places ? h->places : from.buffer, to, fault, (int64_t)code,
                       from.start, from.batch1, from.batch2, from.row, heads, rows, size,
                       (int64_t)bias, t->bias_from, t->half_size, (int64_t)t->interleaved,
                       (int64_t)t->how, h->past, (int64_t)h->has_places, t->table_rows);
    return (ort_cl_matrix){to, 0, heads * rows * size, rows * size, size, 1};
}

/* ---- masks */

static bool bias_fits(const ort_cl_step *s, const ort_cl_heads *h, int input)
{
    const ort_fact *add = ort_cl_in(s, input);
    if (!add)
        return true;
    return (ort_cl_dim(add, 0) == 1 || ort_cl_dim(add, 0) == h->batch) &&
           (ort_cl_dim(add, 1) == 1 || ort_cl_dim(add, 1) == h->heads * h->shared) &&
           ort_cl_dim(add, 2) == h->rows && ort_cl_dim(add, 3) <= h->keys;
}

/* Forms of a mask of integers; 0: no such one. */
static int mask_form(const ort_cl_step *s, const ort_cl_heads *h, int input, bool shared)
{
    const ort_fact *mask = ort_cl_in(s, input);
    int rank = mask ? mask->type.rank : 0;
    int64_t first = rank > 0 ? ort_cl_dim(mask, 0) : 0;
    int64_t width = rank > 0 ? ort_cl_dim(mask, rank - 1) : 0;
    if (rank == 1)
        return first == h->batch || first == 2 * h->batch;
    if (first != h->batch || (rank == 3 && ort_cl_dim(mask, 1) != h->rows))
        return 0;
    bool fits = width == h->keys || (rank == 2 && width == h->fresh) ||
                (shared && width < h->keys);
    return fits && rank <= 3 ? rank : 0;
}

static void join_masks(ort_cl_step *s, ort_cl_heads *h, int ints, int form, int add, bool last)
{
    const ort_fact *mask = form ? ort_cl_in(s, ints) : NULL, *more = ort_cl_in(s, add);
    int64_t heads = more ? ort_cl_dim(more, 1) : 1, rows = more || form == 3 ? h->rows : 1;
    int64_t step[4] = {0}, keys = h->keys;
    int to = ort_cl_scratch(s, h->batch * heads * rows * keys);
    const int64_t grid[3] = {ort_cl_along(s, keys), rows * heads, h->batch};
    if (more)
        ort_cl_spread(&more->type, 4, step);
    ort_cl_launch_grid(s, "attention", "join_masks", grid, NULL, "bbbiiiiiiiiiiiif",
                       mask ? ort_cl_read(s, ints) : to, more ? ort_cl_read(s, add) : to, to,
                       (int64_t)form, mask ? ort_cl_dim(mask, mask->type.rank - 1) : 0,
                       (int64_t)(mask && ort_cl_dim(mask, 0) == 2 * h->batch), (int64_t)last,
                       (int64_t)(more != NULL), step[0], step[1], step[2],
                       more ? ort_cl_dim(more, 3) : 0, heads, rows, keys,
                       (double)ort_node_float(s->node, "mask_filter_value", -10000));
    h->mask = (ort_cl_mask){ORT_CL_FLOATS, to, heads * rows * keys, heads > 1 ? rows * keys : 0,
                            rows > 1 ? keys : 0, 1, keys, 0};
}

ort_status ort_cl_find_mask(ort_cl_step *s, ort_cl_heads *h, int ints, int add, bool shared,
                            ort_error *err)
{
    const ort_fact *mask = ints >= 0 ? ort_cl_in(s, ints) : NULL, *more = ort_cl_in(s, add);
    int form = mask ? mask_form(s, h, ints, shared) : 0;
    if (mask && !form && !strcmp(s->node->op_type, "Attention") && mask->type.rank == 2 &&
        ort_cl_dim(mask, 1) == 1 && (ort_cl_dim(mask, 0) == 1 || ort_cl_dim(mask, 0) == h->batch))
        mask = NULL; /* one number for all keys hides none */
    if ((mask && !form) || !bias_fits(s, h, add))
        return ort_cl_misfit(err);
    if (!mask && !more)
        return ORT_OK;
    if (!mask && ort_cl_dim(more, 3) == h->keys)
        h->mask = ort_cl_mask_of(s, add);
    else if (!more && form == 2 && ort_cl_dim(mask, 1) == h->keys)
        h->mask = (ort_cl_mask){ORT_CL_INTS, ort_cl_read(s, ints), h->keys, 0, 0, 1, h->keys,
                                ort_node_float(s->node, "mask_filter_value", -10000)};
    else
        join_masks(s, h, ints, form, add, !shared);
    return ORT_OK;
}

static double scale_of(const ort_cl_step *s, const ort_cl_heads *h)
{
    double scale = ort_node_float(s->node, "scale", 0);
    return scale != 0 ? scale : 1 / sqrt((double)(h->size > 0 ? h->size : 1));
}

bool ort_cl_types_fit(const ort_graph *graph, const ort_node *node, unsigned ints, const char **why)
{
    *why = "the element types have no kernel";
    for (int i = 0; i < node->input_count; i++)
        if (ort_cl_has(node, i) &&
            ort_cl_type(graph, node, i) != (ints >> i & 1 ? ORT_DTYPE_INT32 : ORT_DTYPE_FLOAT))
            return false;
    return true;
}

bool ort_cl_has_rank(const ort_graph *graph, const ort_node *node, int input, int least, int most)
{
    return !ort_cl_has(node, input) || (ort_cl_rank(graph, node, input) >= least &&
                                        ort_cl_rank(graph, node, input) <= most);
}

int ort_cl_cache_place(ort_cl_step *s, const ort_cl_heads *h, const ort_cl_cache *c)
{
    if (ort_cl_gives(s->node, c->present))
        return ort_cl_write(s, c->present);
    return ort_cl_has(s->node, c->past) || h->has_places
               ? ort_cl_scratch(s, h->batch * h->heads * h->keys * c->size) : -1;
}

void ort_cl_attend_side_by_side(ort_cl_step *s, ort_cl_heads *h)
{
    int64_t width = h->heads * h->shared * h->value_size;
    h->out = (ort_cl_matrix){ort_cl_write(s, 0), 0, h->rows * width, h->value_size, width, 1};
    h->scale = scale_of(s, h);
    ort_cl_attend(s, h);
}
