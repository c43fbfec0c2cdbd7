/* formula.c - texts that rules compute with (emit.h): what their names stand for comes with a call,
 * and what they may say besides operators is spelled here, in texts again.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "emit/write.h"

/* ---- texts */

/* How many elements, as a number of like. */
static ort_id count_of(ort_emit *e, ort_id value, ort_id like)
{
    const ort_type *type = ort_emit_type(e, value);
    double count = 1;
    for (int i = 0; i < type->rank && count >= 0; i++)
        count = ort_dim_known(type->dim[i]) ? count * (double)type->dim[i].size : -1;
    if (type->rank < 0 || count < 0)
        return ort_emit_formula(e, "(CastLike (Size x) like)", "x like", value, like);
    return ort_emit_number(e, like, count);
}

/* "(Word value like)" */
static const ort_word words[] = {
    {"CastLike", ort_emit_cast_like},
    {"Count", count_of},
    {"ExpandLike", ort_emit_expand},
    {"ReshapeLike", ort_emit_reshape_like},
    {"SumTo", ort_emit_sum_to},
    {NULL, NULL},
};

/* "$n", "$list[]" or "x", and what follows for it. */
static ort_bound next_argument(bool named, bool is_list, va_list *args)
{
    static const int64_t empty[1];
    ort_bound b = {.value = ORT_ID_NONE, .is_number = named && !is_list};
    if (is_list) {
        b.list = va_arg(*args, const int64_t *);
        b.count = va_arg(*args, int);
        b.list = b.list ? b.list : empty;
    } else if (named) {
        b.number = va_arg(*args, double);
    } else {
        b.value = va_arg(*args, ort_id);
    }
    return b;
}

static void bind_arguments(ort_match *match, ort_writer *w, const char *names, va_list *args)
{
    for (const char *at = names; *at; at += strspn(at, " ")) {
        bool named = *at == '$';
        int length = (int)strcspn(at += named, " [");
        bool is_list = at[length] == '[';
        int name = ort_text_find(match->text, at, length);
        ort_bound b = next_argument(named, is_list, args);
        if (w->like == ORT_ID_NONE)
            w->like = b.value;
        if (name >= 0)
            match->bound[name] = b;
        at += length + 2 * is_list;
    }
}

ort_id ort_emit_formula(ort_emit *e, const char *text, const char *names, ...)
{
    ort_match match = {.graph = e->graph};
    ort_id result = ORT_ID_NONE;
    ort_text parsed;
    va_list args;
    if (e->status != ORT_OK)
        return result;
    if (ort_text_parse(&parsed, text, NULL)) {
        match.text = &parsed;
        for (size_t i = 0; i < parsed.names.count; i++)
            match.bound[i] = (ort_bound){.value = ORT_ID_NONE};
        ort_writer w = {.e = e, .text = &parsed, .match = &match, .words = words,
                        .like = ORT_ID_NONE};
        va_start(args, names);
        bind_arguments(&match, &w, names, &args);
        va_end(args);
        result = ort_write(&w, &parsed.choices.data[0]);
    } else {
        ort_emit_fail_memory(e);
    }
    ort_text_release(&parsed);
    return result;
}

/* ---- shapes */

ort_id ort_emit_dim(ort_emit *e, ort_id value, int axis)
{
    const char *text = e->opset >= 15 ? "(Shape x start=$axis end=$next)"
                                      : "(Gather (Shape x) [$axis] axis=0)";
    return ort_emit_formula(e, text, "x $axis $next", value, (double)axis, (double)axis + 1);
}

ort_id ort_emit_expand(ort_emit *e, ort_id value, ort_id like)
{
    if (ort_facts_same_shape(ort_emit_type(e, value), ort_emit_type(e, like)))
        return value;
    return ort_emit_formula(e, "(Expand x (Dims like))", "x like", value, like);
}

ort_id ort_emit_zeros(ort_emit *e, ort_id like)
{
    return ort_emit_expand(e, ort_emit_number(e, like, 0), like);
}

ort_id ort_emit_reshape_to(ort_emit *e, ort_id value, const int64_t *dims, int count)
{
    return ort_emit_formula(e, "(Reshape x $dims)", "x $dims[]", value, dims, count);
}

/* A dimension of zero would mean "copy" without allowzero, which Reshape has from opset 14 on. */
ort_id ort_emit_reshape_like(ort_emit *e, ort_id value, ort_id like)
{
    if (ort_facts_same_shape(ort_emit_type(e, value), ort_emit_type(e, like)))
        return value;
    return ort_emit_formula(e, e->opset >= 14 ? "(Reshape x (Dims like) allowzero=1)"
                                              : "(Reshape x (Dims like))", "x like", value, like);
}

ort_id ort_emit_unsqueeze(ort_emit *e, ort_id value, const int64_t *axes, int count)
{
    if (!count)
        return value;
    return ort_emit_formula(e, "(Unsqueeze x $axes)", "x $axes[]", value, axes, count);
}

ort_id ort_emit_squeeze(ort_emit *e, ort_id value, const int64_t *axes, int count)
{
    return ort_emit_formula(e, "(Squeeze x $axes)", "x $axes[]", value, axes, count);
}

ort_id ort_emit_transpose(ort_emit *e, ort_id value, const int64_t *perm, int count)
{
    return ort_emit_formula(e, "(Transpose x perm=$perm)", "x $perm[]", value, perm, count);
}

/* ---- sums over what was repeated */

/* Which axes were repeated shows at run time only: those where the padded shape of `like` is 1. */
static ort_id sum_to_dynamic(ort_emit *e, ort_id value, ort_id like)
{
    static const char *const text =
        "shape = (Shape like); more = (Size (Shape x)) - (Size shape);"
        "padded = (Concat (Expand @1 (Reshape more [-1])) shape axis=0);"
        "axes = (Reshape (NonZero (Equal padded @1)) [-1]);"
        "(ReshapeLike (ReduceSum x axes keepdims=1 noop_with_empty_axes=1) like)";
    if (!ort_emit_need_opset(e, 13, "a sum over dimensions known at run time only"))
        return ORT_ID_NONE;
    return ort_emit_formula(e, text, "x like", value, like);
}

/* The axes over which broadcasting `from` to `to` repeats; -1 when that can't be told yet. */
static int repeated_axes(const ort_type *to, const ort_type *from, int64_t *axes)
{
    int count = 0, lead = to->rank - from->rank;
    if (to->rank < 0 || from->rank < 0 || lead < 0)
        return -1;
    for (int i = 0; i < to->rank; i++) {
        ort_dim wide = to->dim[i], narrow = i < lead ? ort_dim_of(1) : from->dim[i - lead];
        if (i >= lead && (ort_dim_equal(wide, narrow) ||
                          (ort_dim_known(narrow) && narrow.size != 1)))
            continue;
        if (!ort_dim_known(narrow))
            return -1;
        axes[count++] = i;
    }
    return count;
}

ort_id ort_emit_sum_to(ort_emit *e, ort_id value, ort_id like)
{
    int64_t axes[ORT_MAX_RANK];
    const ort_type *to = ort_emit_type(e, value), *from = ort_emit_type(e, like);
    if (e->status != ORT_OK)
        return ORT_ID_NONE;
    int lead = to->rank - from->rank, count = repeated_axes(to, from, axes);
    if (count < 0)
        return sum_to_dynamic(e, value, like);
    if (!count)
        return value;
    bool keep = lead != count; /* else the leading axes only */
    ort_id sum = ort_emit_formula(e, "(ReduceSum x $axes keepdims=$keep)", "x $axes[] $keep",
                                  value, axes, count, (double)keep);
    return keep && lead ? ort_emit_reshape_like(e, sum, like) : sum;
}

/* ---- positions */

ort_id ort_emit_iota(ort_emit *e, ort_id x)
{
    return ort_emit_formula(e, "(ReshapeLike (Range @0 (Size x) @1) x)", "x", x);
}

ort_id ort_emit_scatter(ort_emit *e, ort_id x, ort_id indices, ort_id value, bool repeated)
{
    const char *text =
        repeated ? "zeros = (Expand 0 (Reshape (Size x) [-1])); at = (Reshape i [-1]);"
                   "s = (ScatterElements zeros at (Reshape v [-1]) axis=0 reduction=add);"
                   "(ReshapeLike s x)"
                 : "zeros = (Expand 0 (Reshape (Size x) [-1])); at = (Reshape i [-1]);"
                   "s = (ScatterElements zeros at (Reshape v [-1]) axis=0); (ReshapeLike s x)";
    if (repeated && !ort_emit_need_opset(e, 16, "ScatterElements with reduction"))
        return ORT_ID_NONE;
    return ort_emit_formula(e, text, "x i v", x, indices, value);
}
