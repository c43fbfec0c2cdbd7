/* gemm_form.c - products of matrices take a bias and transposes as Gemm.
 *
 *     MatMul, Add b                      Gemm(a, w, b)
 *     Gemm without bias, Add b           Gemm with it
 *     Transpose a or w, Gemm or MatMul   Gemm with transA or transB
 *     Gemm or MatMul, Transpose          Gemm of (a w)' = w' a'
 *
 * For two dimensions only: of more, Gemm would need a Reshape on both sides. The bias must
 * broadcast to the product, not the product to it. Gemm broadcasts this way since opset 7 and may
 * go without a bias since 11; a Transpose that others read stays, but is no longer waited for.
 */
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/facts/perm.h"
#include "pass/rewrite.h"

/* Could p, a Gemm or MatMul, be a Gemm with a bias, or (!biased) without one? */
static bool is_product(const ort_match *m, bool biased)
{
    int opset = (int)ort_model_opset(m->graph->model, ONNX);
    ort_dtype dtype = ort_match_type(m, "p")->dtype;
    return opset >= (biased ? 7 : 11) && ort_type_rank(ort_match_type(m, "a")) == 2 &&
           ort_type_rank(ort_match_type(m, "b")) == 2 && ort_dtype_is_real(dtype) &&
           (dtype != ORT_DTYPE_BFLOAT16 || opset >= 13);
}

/* Does this shape broadcast to that of the product without making it larger? */
static bool broadcasts_to(const ort_type *bias, const ort_type *product)
{
    if (ort_type_rank(bias) < 0 || bias->rank > 2)
        return false;
    for (int i = 1; i <= bias->rank; i++) {
        ort_dim b = bias->dim[bias->rank - i], p = product->dim[2 - i];
        if (!ort_dim_equal(b, p) && !ort_dim_is(b, 1))
            return false;
    }
    return true;
}

static const char *unless_bias(const ort_pass_context *c, ort_match *m)
{
    if (!is_product(m, true) || m->nodes[0]->opset < 7 ||
        ort_match_value(m, "c") == ort_match_value(m, "p"))
        return "";
    if (!broadcasts_to(ort_match_type(m, "c"), ort_match_type(m, "p")))
        return "what is added may be larger than the product";
    if (ort_node_has(ort_match_node(m, "p"), "beta"))
        ort_match_let(m, "beta", 1);
    return NULL;
}

/* Is the node called so, where there is one, a Transpose of two dimensions? */
static bool turns(const ort_match *m, const char *name)
{
    static const ort_perm turn = {.rank = 2, .to = {1, 0}};
    const ort_node *node = ort_match_node(m, name);
    ort_perm have;
    return !node || (ort_perm_of_node(m->graph, node, &have) && ort_perm_equal(&have, &turn));
}

static const char *unless_turned(const ort_pass_context *c, ort_match *m)
{
    const ort_node *p = ort_match_node(m, "p");
    if (!is_product(m, ort_match_has(m, "c")) || !turns(m, "s") || !turns(m, "t"))
        return "";
    if (ort_match_has(m, "s"))
        ort_match_let(m, "left", !ort_node_attr_int(p, "transA"));
    if (ort_match_has(m, "t"))
        ort_match_let(m, "right", !ort_node_attr_int(p, "transB"));
    return NULL;
}

/* C of the Gemm has to lie transposed; numbers do anyway. */
static bool bias_turns(const ort_match *m)
{
    return ort_match_has(m, "c") && ort_match_type(m, "c")->rank != 0;
}

static const char *unless_result_turned(const ort_pass_context *c, ort_match *m)
{
    const ort_node *p = ort_match_node(m, "p");
    if (!is_product(m, ort_match_has(m, "c")) || !turns(m, "t") ||
        (bias_turns(m) && !ort_constant_moves(m->graph, ort_match_value(m, "c"))))
        return "";
    ort_match_let(m, "left", !ort_node_attr_int(p, "transB"));
    ort_match_let(m, "right", !ort_node_attr_int(p, "transA"));
    return NULL;
}

static ort_status turn_bias(ort_pass_context *c, ort_match *m, ort_error *err)
{
    static const ort_perm turn = {.rank = 2, .to = {1, 0}};
    ort_id made;
    if (!bias_turns(m))
        return ORT_OK;
    ORT_TRY(ort_constant_permuted(c->graph, ort_match_value(m, "c"), &turn, &made, err));
    ort_match_let_value(m, "c", made);
    return ORT_OK;
}

static const char *const forms[] = {
    "product(l, r): p:(Gemm l r c?) | p:(MatMul l r)",
    "turned(): @product(+s:(Transpose a), +t:(Transpose b)) | @product(+s:(Transpose a), b)"
    " | @product(a, +t:(Transpose b))",
    NULL,
};

static const ort_rewrite rewrites[] = {
    {"(Add|Sum p:(Gemm|MatMul a b) c)", "p:(Gemm a b c &p beta=$beta)", unless_bias,
     .example = "a:3,4 b:4,5 c:5 opset=17"},
    {"@turned()", "p:(Gemm a b c &p transA=$left transB=$right)", unless_turned,
     .example = "a:4,4 b:4,4 c:4 opset=17"},
    {"t:(Transpose @product(a, b))", "p:(Gemm b a c &p transA=$left transB=$right)",
     unless_result_turned, turn_bias, .example = "a:3,4 b:4,5 c#5 opset=17"},
    {0},
};

const ort_pass ort_pass_gemm_form = {
    .name = "gemm_form",
    .level = 1,
    .doc = "products of two matrices take a bias and transposes as Gemm",
    .rewrites = rewrites,
    .forms = forms,
};
