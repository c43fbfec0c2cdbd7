/* attention_mask.c - what is summed onto the scores of an attention (attention_match.h), as the one
 * value that operators take.
 *
 * A condition is 0 where the score stays, or the masks that were summed before it came; beside the
 * low number that stands elsewhere no score counts.
 */
#include "pass/attention/attention_match.h"
#include "pass/facts/dim_source.h"
#include "pass/facts/facts.h"

/* How many images a batch of `windows` each has, as a list of one number. */
static ort_id images_of(const ort_pass_context *c, ort_emit *e, const ort_attention *a,
                        int64_t windows)
{
    ort_id source;
    int64_t axis;
    if (ort_dim_source(c, ort_emit_type(e, a->terms.apart)->dim[0], &source, &axis))
        return ort_emit_dim(e, source, (int)axis);
    ort_id batch = ort_emit_dim(e, a->q, 0);
    return ort_emit_op2(e, "Div", batch, ort_emit_ints(e, &windows, 1));
}

/* What is summed onto the scores of one image's windows, [n,1 or H,S,T], for all images: [B,...],
 * the windows of an image lying together. */
static ort_id for_images(const ort_pass_context *c, ort_emit *e, const ort_attention *a,
                         ort_id mask)
{
    ort_dim images = ort_emit_type(e, a->terms.apart)->dim[0];
    const int64_t list[4] = {images.size, 1, 1, 1};
    if (ort_dim_is(images, 1))
        return mask;
    if (ort_dim_known(images))
        return ort_emit_op2(e, "Tile", mask, ort_emit_ints(e, list, 4));
    ort_id count = images_of(c, e, a, ort_emit_type(e, mask)->dim[0].size);
    ort_id parts[2] = {count, ort_emit_ints(e, list + 1, 3)};
    return ort_emit_op2(e, "Tile", mask, ort_emit_concat(e, parts, 2));
}

/* [B*H,S,T] */
static bool is_folded(const ort_emit *e, const ort_attention_terms *t, ort_id mask)
{
    const ort_type *type = ort_emit_type(e, mask);
    return t->unfold && type->rank == 3 &&
           ort_dim_equal(type->dim[0], ort_emit_type(e, t->unfold->inputs[0])->dim[0]);
}

static bool is_of_batch(const ort_emit *e, const ort_attention_terms *t, ort_id mask)
{
    const ort_type *type = ort_emit_type(e, mask);
    return is_folded(e, t, mask) || (type->rank == 4 && !ort_dim_is(type->dim[0], 1));
}

/* The sum of both, the mask as the scores are unfolded. */
static ort_id plus(ort_emit *e, const ort_attention_terms *t, ort_id sum, ort_id mask)
{
    if (is_folded(e, t, mask)) {
        ort_id inputs[2] = {mask, t->unfold->inputs[1]};
        mask = ort_emit_op(e, "Reshape", inputs, 2, t->unfold->attrs, t->unfold->attr_count);
    }
    return sum == ORT_ID_NONE ? mask : ort_emit_op2(e, "Add", sum, mask);
}

/* The masks from this one on that are of the batch, or aren't, onto `sum`. */
static ort_id add_masks(ort_emit *e, const ort_attention_terms *t, int first, bool of_batch,
                        ort_id sum)
{
    for (int i = first; i < t->mask_count && e->status == ORT_OK; i++)
        if (is_of_batch(e, t, t->masks[i]) == of_batch)
            sum = plus(e, t, sum, t->masks[i]);
    return sum;
}

/* All masks from this one on as one value; ORT_ID_NONE: nothing. What doesn't depend on the image
 * is summed first: it is smaller, and may be constant. */
static ort_id sum_of(const ort_pass_context *c, ort_emit *e, const ort_attention *a, int first)
{
    ort_id sum = ORT_ID_NONE, window = a->terms.window;
    if (window != ORT_ID_NONE) {
        const ort_type *type = ort_emit_type(e, window);
        int64_t list[4];
        for (int d = 0; d < 4; d++)
            list[d] = type->dim[type->rank - 4 + d].size;
        sum = ort_emit_reshape_to(e, window, list, 4);
    }
    sum = add_masks(e, &a->terms, first, false, sum);
    if (window != ORT_ID_NONE && e->status == ORT_OK)
        sum = for_images(c, e, a, sum);
    return add_masks(e, &a->terms, first, true, sum);
}

ort_id ort_attention_mask(const ort_pass_context *c, ort_emit *e, const ort_attention *a)
{
    const ort_attention_terms *t = &a->terms;
    if (t->keep == ORT_ID_NONE)
        return sum_of(c, e, a, 0);
    ort_id kept = sum_of(c, e, a, t->outside);
    if (kept == ORT_ID_NONE)
        kept = ort_emit_number(e, a->q, 0);
    ort_id mask = ort_emit_op3(e, "Where", t->keep, t->keep_is_inverse ? t->fill : kept,
                               t->keep_is_inverse ? kept : t->fill);
    for (int i = 0; i < t->outside && e->status == ORT_OK; i++)
        mask = plus(e, t, mask, t->masks[i]);
    return mask;
}

ort_id ort_attention_full_rows(const ort_pass_context *c, ort_emit *e, ort_id q, bool any_rank,
                               ort_id mask)
{
    if (e->status != ORT_OK)
        return ORT_ID_NONE;
    const ort_type *type = ort_emit_type(e, mask);
    int axis = ort_emit_type(e, q)->rank == 4 ? 2 : 1;
    ort_dim wanted = ort_emit_type(e, q)->dim[axis];
    bool spread = !ort_dim_equal(type->dim[type->rank - 2], wanted);
    const int64_t list[4] = {1, 1, spread && ort_dim_known(wanted) ? wanted.size : 1, 1};
    if ((type->rank == 4 || any_rank) && !spread)
        return mask;
    if (!spread || ort_dim_known(wanted))
        return ort_emit_op2(e, "Expand", mask, ort_emit_ints(e, list, 4));
    ort_id size = ort_attention_size(c, e, q, axis), one = ort_emit_ints(e, list, 1);
    const ort_id parts[4] = {one, one, size, one};
    return ort_emit_op2(e, "Expand", mask, ort_emit_concat(e, parts, 4));
}
