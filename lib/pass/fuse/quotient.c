/* quotient.c - b times the reciprocal of a becomes b / a: one rounding less. After the fusions, and
 * not where a is a root: that is how exporters spell a normalization, which a later run with other
 * options (--contrib, --opset) may still make one node of.
 */
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/rewrite.h"

/* A single 1 that doesn't make the quotient larger than what it divides. */
static bool is_one(const ort_match *m, const ort_type *a)
{
    const ort_tensor *one = ort_match_constant(m, "one");
    return ort_tensor_count(one) == 1 && ort_constant_is_all(one, 1) &&
           ort_type_rank(a) >= one->shape.rank;
}

static const char *unless(const ort_pass_context *c, ort_match *m)
{
    const ort_type *a = ort_match_type(m, "a");
    if (ort_dtype_get(a->dtype)->class_ != ORT_CLASS_FLOAT)
        return "it isn't of floating point";
    if (ort_match_has(m, "one") && !is_one(m, a))
        return "it isn't the reciprocal of one number";
    if (ort_edit_is_any(ort_edit_producer(c->graph, ort_match_value(m, "a")), "Sqrt|Pow"))
        return "the reciprocal of a root may be a normalization's";
    return NULL;
}

static const ort_rewrite rewrites[] = {
    {"b * (#one / a) | b * (Reciprocal a)", "(Div@7 b a)", unless, .example = "one=1"},
    {0},
};

const ort_pass ort_pass_quotient = {
    .name = "quotient",
    .level = 2,
    .doc = "a product with a reciprocal becomes a quotient",
    .rewrites = rewrites,
};
