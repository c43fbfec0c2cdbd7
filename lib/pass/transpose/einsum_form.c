/* einsum_form.c - a Transpose before or after an Einsum is removed by changing the equation
 * instead: the letters of the transposed term are reordered.
 *
 *     Transpose x 0,2,1; Einsum "bij,jk->bik"      Einsum "bji,jk->bik"
 *     Einsum "bij,jk->bik"; Transpose 0,2,1        Einsum "bij,jk->bki"
 *
 * A term with an ellipsis stays as it is, and so does an output that the equation doesn't state.
 */
#include "base/error.h"
#include "pass/facts/perm.h"
#include "pass/pass.h"

enum { EQUATION_MAX = 256 };

typedef struct equation { /* without blanks */
    char text[EQUATION_MAX];
    int length;
} equation;

static bool read_equation(const ort_node *node, equation *e)
{
    const char *from = ort_node_string(node, "equation", "");
    e->length = 0;
    for (; *from; from++) {
        if (*from == ' ')
            continue;
        if (e->length + 1 >= EQUATION_MAX)
            return false;
        e->text[e->length++] = *from;
    }
    e->text[e->length] = 0;
    return e->length > 0;
}

/* The letters of term `index` (of `count`: the output), as many as the rank; NULL: none so. */
static char *term_at(equation *e, int index, int count, int rank)
{
    char *at = e->text, *arrow = strstr(e->text, "->");
    for (int i = 0; i < index && at; i++) {
        at = i + 1 == count ? arrow : strchr(at, ',');
        at = at ? at + (i + 1 == count ? 2 : 1) : NULL;
    }
    if (!at || (int)strcspn(at, ",-") != rank || memchr(at, '.', (size_t)rank))
        return NULL;
    return at;
}

/* Letters of t change places: t[i] goes to place p.to[i], or comes from there. */
static void move_letters(char *t, const ort_perm *p, bool comes)
{
    char moved[ORT_MAX_RANK];
    for (int i = 0; i < p->rank; i++)
        moved[comes ? i : p->to[i]] = t[comes ? p->to[i] : i];
    memcpy(t, moved, (size_t)p->rank);
}

static ort_status take_inputs(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    equation e;
    bool any = false;
    if (!read_equation(node, &e))
        return ORT_OK;
    for (int i = 0; i < node->input_count; i++) {
        const ort_node *transpose = ort_edit_producer(c->graph, node->inputs[i]);
        ort_perm p;
        if (!ort_edit_is(transpose, ONNX, "Transpose") ||
            !ort_perm_of_node(c->graph, transpose, &p))
            continue;
        char *term = term_at(&e, i, node->input_count, p.rank);
        if (!term) {
            ort_pass_note(c, node, "its equation has an ellipsis");
            continue;
        }
        move_letters(term, &p, false);
        ort_node_set_input(c->graph, node, i, transpose->inputs[0]);
        any = true;
    }
    *changes += any;
    ort_attr attr = ort_attr_string("equation", e.text);
    return any ? ort_edit_set_attr(c->graph, node, &attr, err) : ORT_OK;
}

static ort_status take_result(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    ort_graph *graph = c->graph;
    ort_node *transpose = ort_edit_only_reader(graph, node->outputs[0]);
    equation e;
    ort_perm p;
    if (!ort_edit_is(transpose, ONNX, "Transpose") || !read_equation(node, &e) ||
        !ort_perm_of_node(graph, transpose, &p))
        return ORT_OK;
    char *term = term_at(&e, node->input_count, node->input_count, p.rank);
    if (!term) {
        ort_pass_note(c, node, "its equation doesn't say the output, or has an ellipsis");
        return ORT_OK;
    }
    move_letters(term, &p, true);
    ort_attr attr = ort_attr_string("equation", e.text);
    ort_node_spec spec = {.op_type = "Einsum", .inputs = node->inputs,
                          .input_count = node->input_count, .set = &attr, .set_count = 1,
                          .opset = node->opset};
    ++*changes;
    return ort_edit_replace(graph, node, transpose, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (!ort_edit_is(node, ONNX, "Einsum"))
            continue;
        ORT_TRY(take_inputs(c, node, changes, err));
        ORT_TRY(take_result(c, node, changes, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_einsum_form = {
    .name = "einsum_form",
    .level = 1,
    .doc = "transposes around an Einsum go into its equation",
    .apply = apply,
};
