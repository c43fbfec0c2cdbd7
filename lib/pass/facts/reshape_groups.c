/* reshape_groups.c - the shapes of a Reshape divided from the left into the least groups of as
 * many elements (reshape_groups.h). Symbolic dimensions are compared as expressions; what can't be
 * compared is one group up to the equal dimensions on the right. */
#include "pass/facts/reshape_groups.h"

#include "pass/facts/facts.h"

typedef struct walk { /* the axes of one side that aren't 1 */
    const ort_type *type;
    int axis[ORT_MAX_RANK], count, at;
} walk;

static bool begin(walk *w, const ort_type *type)
{
    w->type = type;
    w->count = w->at = 0;
    if (ort_type_rank(type) < 0)
        return false;
    for (int i = 0; i < type->rank; i++) {
        if (ort_dim_is(type->dim[i], 0))
            return false;
        if (!ort_dim_is(type->dim[i], 1))
            w->axis[w->count++] = i;
    }
    return true;
}

static ort_dim dim_at(const walk *w, int i)
{
    return w->type->dim[w->axis[i]];
}

/* Takes axes of `more` until the product is `wanted`; false: it never is. */
static bool extend(ort_dim_table *dims, walk *more, int end, ort_dim product, ort_dim wanted)
{
    for (int at = more->at; at < end; at++) {
        product = ort_dim_mul(dims, product, dim_at(more, at));
        if (ort_dim_equal(product, wanted)) {
            more->at = at + 1;
            return true;
        }
    }
    return false;
}

/* One group of known dimensions, at least one axis on each side; false: sides run out. */
static bool take_known(walk *a, int a_end, walk *b, int b_end)
{
    int64_t x = dim_at(a, a->at++).size, y = dim_at(b, b->at++).size;
    while (x != y) {
        walk *less = x < y ? a : b;
        if (less->at >= (x < y ? a_end : b_end) || !ort_dim_known(dim_at(less, less->at)))
            return false;
        *(x < y ? &x : &y) *= dim_at(less, less->at++).size;
    }
    return true;
}

/* The next group; false: what is left is one. */
static bool take_group(ort_dim_table *dims, walk *a, int a_end, walk *b, int b_end)
{
    if (a->at >= a_end || b->at >= b_end)
        return false;
    ort_dim x = dim_at(a, a->at), y = dim_at(b, b->at);
    walk from_a = *a, from_b = *b;
    if (ort_dim_known(x) && ort_dim_known(y) && take_known(a, a_end, b, b_end))
        return true;
    *a = from_a;
    *b = from_b;
    a->at++;
    b->at++;
    return ort_dim_equal(x, y) || extend(dims, b, b_end, y, x) || extend(dims, a, a_end, x, y);
}

static void mark(const walk *w, int from, int to, ort_groups_side *side, int group)
{
    for (int i = from; i < to; i++)
        side->of[w->axis[i]] = (signed char)group;
}

bool ort_groups_of(ort_dim_table *dims, const ort_type *in, const ort_type *out, ort_groups *groups)
{
    walk a, b;
    if (!begin(&a, in) || !begin(&b, out))
        return false;
    int a_end = a.count, b_end = b.count;
    while (a_end > 0 && b_end > 0 && ort_dim_equal(dim_at(&a, a_end - 1), dim_at(&b, b_end - 1)))
        a_end--, b_end--;
    *groups = (ort_groups){.in.rank = in->rank, .out.rank = out->rank};
    memset(groups->in.of, -1, sizeof groups->in.of);
    memset(groups->out.of, -1, sizeof groups->out.of);
    while (a.at < a_end || b.at < b_end) {
        int a_from = a.at, b_from = b.at;
        if (!take_group(dims, &a, a_end, &b, b_end)) {
            a.at = a_end;
            b.at = b_end;
        }
        if (a.at == a_from || b.at == b_from)
            return false; /* an unknown dimension that stands for 1 */
        mark(&a, a_from, a.at, &groups->in, groups->count);
        mark(&b, b_from, b.at, &groups->out, groups->count++);
    }
    for (int k = 0; k < a.count - a_end; k++) {
        mark(&a, a_end + k, a_end + k + 1, &groups->in, groups->count);
        mark(&b, b_end + k, b_end + k + 1, &groups->out, groups->count++);
    }
    return true;
}

bool ort_groups_order(const ort_groups_side *side, const ort_perm *p, int order[ORT_MAX_RANK])
{
    ort_perm inverse = ort_perm_inverse(p);
    bool seen[ORT_MAX_RANK] = {false};
    int count = 0, last = -1;
    for (int k = 0; k < side->rank; k++) {
        int axis = inverse.to[k], group = side->of[axis];
        if (group < 0)
            continue;
        if (count && order[count - 1] == group) {
            if (axis < last)
                return false;
        } else {
            if (seen[group])
                return false;
            order[count++] = group;
        }
        seen[group] = true;
        last = axis;
    }
    return true;
}

/* Places from *next on for the axes of 1 from `axis` on. */
static void place_ones(const ort_groups_side *side, int axis, ort_perm *p, int *next)
{
    for (; axis < side->rank && side->of[axis] < 0; axis++)
        p->to[axis] = (*next)++;
}

ort_perm ort_groups_perm(const ort_groups_side *side, const int *order, int count)
{
    ort_perm p = {.rank = side->rank};
    int next = 0;
    place_ones(side, 0, &p, &next);
    for (int k = 0; k < count; k++)
        for (int axis = 0; axis < side->rank; axis++) {
            if (side->of[axis] != order[k])
                continue;
            p.to[axis] = next++;
            place_ones(side, axis + 1, &p, &next);
        }
    return p;
}

bool ort_reshape_says(const ort_type *from, const ort_type *to, int64_t list[ORT_MAX_RANK])
{
    int open = 0;
    if (ort_type_rank(from) < 0 || ort_type_rank(to) < 0)
        return false;
    for (int i = 0; i < to->rank; i++) {
        bool known = ort_dim_known(to->dim[i]);
        if (known && to->dim[i].size == 0)
            return false;
        list[i] = known ? to->dim[i].size
                  : i < from->rank && ort_dim_equal(to->dim[i], from->dim[i]) ? 0 : -1;
        open += list[i] == -1;
    }
    return open <= 1;
}
