/* test_graph.c - symbolic dims, import, functions, order, saving, comparing, cutting, checking.
 * Models are written as bytes by hand, so that what is tested is what a file says. */
#include "test.h"

#include <stdlib.h>

#include "base/findings.h"
#include "exec/env.h"
#include "graph/diff.h"
#include "graph/extract.h"
#include "graph/override.h"
#include "graph/uses.h"
#include "io/source.h"
#include "io/wire.h"

/* ---- symbolic dims */

static void dims(test_state *test)
{
    ort_dim_table *t = ort_dim_table_new();
    char text[128];
    ort_dim n = ort_dim_symbol(t, "n"), h = ort_dim_symbol(t, "h");
    ort_dim twice = ort_dim_add(t, n, n), two = ort_dim_of(2);
    CHECK(ort_dim_equal(twice, ort_dim_mul(t, two, n)));
    CHECK_TEXT(ort_dim_format(t, twice, text, sizeof text), "2*n");
    CHECK(ort_dim_equal(ort_dim_div(t, twice, two), n));
    CHECK(ort_dim_equal(ort_dim_div(t, ort_dim_mul(t, n, h), h), n));
    CHECK(ort_dim_equal(ort_dim_sub(t, ort_dim_add(t, n, h), h), n));
    ort_dim half = ort_dim_div(t, ort_dim_add(t, h, ort_dim_of(1)), two);
    CHECK_TEXT(ort_dim_format(t, half, text, sizeof text), "floor((h+1)/2)");
    CHECK_TEXT(ort_dim_format(t, half, text, 10), "?"); /* not half of it */
    ort_dim quarter = ort_dim_div(t, ort_dim_add(t, half, ort_dim_of(1)), two);
    CHECK_TEXT(ort_dim_format(t, quarter, text, sizeof text), "floor((h+3)/4)");
    ort_dim up = ort_dim_ceil_div(t, ort_dim_ceil_div(t, h, two), ort_dim_of(3));
    CHECK_TEXT(ort_dim_format(t, up, text, sizeof text), "ceil(h/6)");
    ort_dim both = ort_dim_add(t, n, h);
    CHECK(ort_dim_equal(ort_dim_parse(t, "h + n"), both));
    CHECK(ort_dim_equal(ort_dim_parse(t, "n+h"), both));
    CHECK(ort_dim_equal(ort_dim_parse(t, "2*(n + h) - h - h"), twice));
    CHECK(ort_dim_equal(ort_dim_parse(t, "n"), n));
    const char *const names[] = {"n-h", "n +", "(n + h", "floor(n + h)", "n + h/2", "+", "2 + 3",
                                 "n + 2h", "n - -h", "a b*c", "n + 99999999999"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(ort_dim_equal(ort_dim_parse(t, names[i]), ort_dim_symbol(t, names[i])));
    ort_dim less = ort_dim_sub(t, h, two); /* 2 below: may be negative, and so may its half */
    CHECK(ort_dim_at_least(t, twice, n) && !ort_dim_at_least(t, n, twice));
    CHECK(ort_dim_at_least(t, n, ort_dim_of(-1)) && !ort_dim_at_least(t, n, ort_dim_of(1)));
    CHECK(ort_dim_at_least(t, half, ort_dim_of(0)));
    CHECK(!ort_dim_at_least(t, ort_dim_div(t, less, ort_dim_of(3)), ort_dim_of(0)));
    ort_dim mixed = ort_dim_ceil_div(t, half, two);
    CHECK_TEXT(ort_dim_format(t, mixed, text, sizeof text), "ceil(floor((h+1)/2)/2)");
    CHECK(ort_dim_substitute(t, half, "h", 7).size == 4);
    CHECK(ort_dim_known(ort_dim_substitute(t, half, "h", 7)));
    CHECK(!ort_dim_known(ort_dim_substitute(t, half, "n", 7)));
    CHECK(ort_dim_ceil_div(NULL, ort_dim_of(7), two).size == 4);
    CHECK(ort_dim_div(NULL, ort_dim_of(-7), two).size == -4);
    CHECK(ort_dim_div(t, n, ort_dim_of(0)).expr == ORT_DIM_UNKNOWN);
    CHECK(ort_dim_equal(ort_dim_max(t, n, ort_dim_of(0)), n));
    CHECK(ort_dim_equal(ort_dim_min(t, n, ort_dim_of(INT64_MAX)), n));
    CHECK(!ort_dim_equal(ort_dim_unknown(), ort_dim_unknown()));
    ort_dim out;
    CHECK(ort_dim_broadcast(t, n, ort_dim_of(1), &out) && ort_dim_equal(out, n));
    CHECK(ort_dim_broadcast(t, n, ort_dim_of(5), &out) && out.size == 5);
    CHECK(!ort_dim_broadcast(t, ort_dim_of(3), ort_dim_of(5), &out));
    /* Products that overflow are unknown, not wrong. */
    ort_dim big = ort_dim_mul(t, n, ort_dim_of(INT64_MAX));
    CHECK(ort_dim_mul(t, big, two).expr == ORT_DIM_UNKNOWN);
    ort_dim_table *copy = ort_dim_table_clone(t);
    CHECK_TEXT(ort_dim_format(copy, half, text, sizeof text), "floor((h+1)/2)");
    CHECK(ort_dim_equal(ort_dim_symbol(copy, "h"), h));
    ort_dim_table_free(copy);
    ort_dim_table_free(t);
}

/* ---- models as bytes */

static void text(ort_strbuf *out, uint32_t field, const char *s)
{
    ort_wire_put_bytes(out, field, s, strlen(s));
}

static void nest(ort_strbuf *out, uint32_t field, ort_strbuf *inner)
{
    ort_wire_put_bytes(out, field, inner->data ? inner->data : "", inner->length);
    ort_strbuf_release(inner);
}

/* "Add a,b:c" with an optional name and domain. */
static void node(ort_strbuf *out, uint32_t field, const char *spec, const char *name,
                 const char *domain)
{
    ort_strbuf n = {0};
    char copy[256], *rest = copy;
    snprintf(copy, sizeof copy, "%s", spec);
    const char *op = strsep(&rest, " ");
    char *inputs = strsep(&rest, ":");
    while (inputs && *inputs)
        text(&n, 1, strsep(&inputs, ","));
    while (rest && *rest)
        text(&n, 2, strsep(&rest, ","));
    text(&n, 3, name);
    text(&n, 4, op);
    if (*domain)
        text(&n, 7, domain);
    nest(out, field, &n);
}

/* A float value of shape [n, 3]. */
static void info(ort_strbuf *graph, uint32_t field, const char *name)
{
    ort_strbuf value = {0}, type = {0}, tensor = {0}, shape = {0}, dim = {0};
    text(&dim, 2, "n");
    nest(&shape, 1, &dim);
    ort_wire_put_int(&dim, 1, 3);
    nest(&shape, 1, &dim);
    ort_wire_put_int(&tensor, 1, ORT_DTYPE_FLOAT);
    nest(&tensor, 2, &shape);
    nest(&type, 1, &tensor);
    text(&value, 1, name);
    nest(&value, 2, &type);
    nest(graph, field, &value);
}

static void weight(ort_strbuf *graph, const char *name, float first)
{
    ort_strbuf t = {0};
    float data[30] = {first};
    ort_wire_put_int(&t, 1, 10);
    ort_wire_put_int(&t, 1, 3);
    ort_wire_put_int(&t, 2, ORT_DTYPE_FLOAT);
    text(&t, 8, name);
    ort_wire_put_bytes(&t, 9, data, sizeof data);
    nest(graph, 5, &t);
}

static void opset(ort_strbuf *out, uint32_t field, const char *domain, int version)
{
    ort_strbuf o = {0};
    text(&o, 1, domain);
    ort_wire_put_int(&o, 2, version);
    nest(out, field, &o);
}

static void model_of(ort_strbuf *model, ort_strbuf *graph)
{
    ort_wire_put_int(model, 1, 8);
    nest(model, 7, graph);
    opset(model, 8, "", 17);
    opset(model, 8, "local", 1);
    ort_wire_put_bytes(model, 999, "unknown", 7);
}

static ort_status load(ort_env *env, const ort_strbuf *bytes, ort_model **model, ort_error *err)
{
    return ort_model_load_memory(env, bytes->data, bytes->length, NULL, model, err);
}

/* x -> Relu -> Mul w -> y, plus Neg -> z */
static void chain(ort_strbuf *model, float first)
{
    ort_strbuf graph = {0};
    node(&graph, 1, "Relu x:a", "relu", "");
    node(&graph, 1, "Mul a,w:y", "mul", "");
    node(&graph, 1, "Neg a:z", "neg", "");
    weight(&graph, "w", first);
    info(&graph, 11, "x");
    info(&graph, 12, "y");
    info(&graph, 12, "z");
    model_of(model, &graph);
}

/* ---- import */

static void problems_at_once(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf graph = {0}, bytes = {0};
    ort_model *model = NULL;
    ort_error err = {0};
    CHECK(!ort_env_new(NULL, &env, NULL));
    node(&graph, 1, "Add x,nothing:c", "first", "");
    node(&graph, 1, "Add c,missing:c", "second", "");
    info(&graph, 11, "x");
    info(&graph, 12, "nowhere");
    model_of(&bytes, &graph);
    CHECK(load(env, &bytes, &model, &err) == ORT_ERROR_MODEL && !model && err.count == 4);
    CHECK(strstr(err.message, "'nothing'") && strstr(err.message, "'missing'"));
    CHECK(strstr(err.message, "'nowhere'") && strstr(err.message, "'c' is defined twice"));
    ort_strbuf_release(&bytes);

    node(&graph, 1, "Add x,b:a", "one", "");
    node(&graph, 1, "Relu a:b", "two", "");
    info(&graph, 11, "x");
    info(&graph, 12, "b");
    model_of(&bytes, &graph);
    CHECK(load(env, &bytes, &model, &err) == ORT_ERROR_MODEL);
    CHECK(strstr(err.message, "cycle") && strstr(err.message, "'one'") &&
          strstr(err.message, "'two'"));
    ort_strbuf_release(&bytes);
    ort_env_free(env);
}

static ort_status keep(void *arg, const void *bytes, size_t count, ort_error *err)
{
    ort_strbuf_add_bytes(arg, bytes, count);
    return ORT_OK;
}

static void sorting(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf graph = {0}, bytes = {0}, saved = {0};
    ort_model *model = NULL, *again = NULL;
    CHECK(!ort_env_new(NULL, &env, NULL));
    node(&graph, 1, "Relu c:d", "last", "");
    node(&graph, 1, "Relu a:b", "second", "");
    node(&graph, 1, "Relu x:a", "first", "");
    node(&graph, 1, "Relu b:c", "third", "");
    info(&graph, 11, "x");
    info(&graph, 12, "d");
    model_of(&bytes, &graph);
    CHECK(!load(env, &bytes, &model, NULL));
    static const char *const order[] = {"first", "second", "third", "last"};
    for (size_t i = 0; i < 4; i++)
        CHECK_TEXT(model->graph->nodes.data[model->graph->order.data[i]]->name, order[i]);
    CHECK(!ort_model_export(model, NULL, keep, &saved, NULL)); /* as the specification wants it */
    CHECK(!ort_model_load_memory(env, saved.data, saved.length, NULL, &again, NULL));
    for (size_t i = 0; again && i < 4; i++)
        CHECK_TEXT(again->graph->nodes.data[i]->name, order[i]);
    ort_model_free(again);
    ort_model_free(model);
    ort_strbuf_release(&saved);
    ort_strbuf_release(&bytes);
    ort_env_free(env);
}

/* ---- numbers and readers: what must not cost in proportion to what is there */

static size_t questions;

static bool below(const void *arg, const char *name)
{
    questions++;
    return strtoul(name + 2, NULL, 10) < 70000;
}

static void numbering(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf bytes = {0};
    ort_model *model = NULL;
    ort_arena arena = {0};
    char name[24];
    questions = 0;
    CHECK_TEXT(ort_free_name(&arena, "x", 3, below, NULL), "x_70000");
    CHECK(questions < 40);
    CHECK_TEXT(ort_free_name(&arena, "x", 70000, below, NULL), "x_70000");
    ort_arena_release(&arena);
    CHECK(!ort_env_new(NULL, &env, NULL));
    chain(&bytes, 1);
    CHECK(!load(env, &bytes, &model, NULL));
    for (int i = 1; i < 100; i++) {
        ort_id id = ort_graph_add_value(model->graph, "x");
        CHECK(id != ORT_ID_NONE);
        snprintf(name, sizeof name, "x_%d", i);
        CHECK_TEXT(model->graph->values.data[id]->name, name);
    }
    ort_model_free(model);
    ort_strbuf_release(&bytes);
    ort_env_free(env);
}

/* A node that reads a value in several slots, an absent input between them. */
static void readers(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf bytes = {0};
    ort_model *model = NULL;
    CHECK(!ort_env_new(NULL, &env, NULL));
    chain(&bytes, 1);
    CHECK(!load(env, &bytes, &model, NULL));
    ort_graph *graph = model->graph;
    ort_id a = ort_graph_add_value(graph, "a"), b = ort_graph_add_value(graph, "b");
    ort_id in[5] = {a, ORT_ID_NONE, a, b, a}, out[2] = {ort_graph_add_value(graph, "p"),
                                                       ort_graph_add_value(graph, "q")};
    ort_node *wide = ort_graph_add_node(graph, "", "Sum", "wide", in, 5, &out[0], 1);
    ort_node *other = ort_graph_add_node(graph, "", "Neg", "other", &a, 1, &out[1], 1);
    CHECK(wide && other && graph->values.data[a]->use_count == 4);
    ort_graph_replace_uses(graph, a, b);
    CHECK(graph->values.data[a]->use_count == 0 && graph->values.data[b]->use_count == 5);
    CHECK(wide->inputs[0] == b && wide->inputs[1] == ORT_ID_NONE && wide->inputs[2] == b &&
          wide->inputs[4] == b && other->inputs[0] == b);
    ort_readers r = ort_readers_of(graph, a);
    CHECK(!ort_readers_next(&r));
    ort_node_set_input(graph, wide, 2, a);
    r = ort_readers_of(graph, a);
    CHECK(ort_readers_next(&r) == wide && r.slot == 2);
    ort_graph_remove_node(graph, other);
    r = ort_readers_of(graph, b);
    for (ort_node *node; (node = ort_readers_next(&r));)
        CHECK(node == wide);
    ort_model_free(model);
    ort_strbuf_release(&bytes);
    ort_env_free(env);
}

/* ---- functions */

static void function(ort_strbuf *model, const char *name, const char *body)
{
    ort_strbuf f = {0};
    char copy[256], *rest = copy;
    snprintf(copy, sizeof copy, "%s", body);
    text(&f, 1, name);
    text(&f, 4, "p");
    text(&f, 5, "q");
    while (rest) {
        const char *spec = strsep(&rest, ";");
        bool own = !strncmp(spec, "Fn", 2);
        node(&f, 7, spec, own ? "inner" : "", own ? "local" : "");
    }
    opset(&f, 9, "", 17);
    opset(&f, 9, "local", 1);
    text(&f, 10, "local");
    nest(model, 25, &f);
}

static void functions(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf graph = {0}, bytes = {0};
    ort_model *model = NULL;
    ort_error err = {0};
    CHECK(!ort_env_new(NULL, &env, NULL));
    node(&graph, 1, "FnA x:m", "one", "local");
    node(&graph, 1, "FnA m:y", "two", "local");
    info(&graph, 11, "x");
    info(&graph, 12, "y");
    model_of(&bytes, &graph);
    function(&bytes, "FnA", "FnB p:t;Neg t:q");
    function(&bytes, "FnB", "Relu p:u;Abs u:q");
    CHECK(!load(env, &bytes, &model, NULL));
    CHECK(model->graph->order.count == 2 && model->functions.count == 2);
    CHECK(!ort_graph_inline_functions(model->graph, NULL));
    CHECK(model->graph->order.count == 6);
    CHECK_TEXT(model->graph->nodes.data[model->graph->order.data[0]]->name, "one/inner/Relu");
    CHECK(ort_graph_find_value(model->graph, "one/t") != ORT_ID_NONE);
    ort_id y = ort_graph_find_value(model->graph, "y");
    CHECK_TEXT(model->graph->nodes.data[model->graph->producers.data[y]]->op_type, "Neg");
    ort_model_free(model);
    ort_strbuf_release(&bytes);

    node(&graph, 1, "FnA x:y", "one", "local");
    info(&graph, 11, "x");
    info(&graph, 12, "y");
    model_of(&bytes, &graph);
    function(&bytes, "FnA", "FnB p:q");
    function(&bytes, "FnB", "FnA p:q");
    CHECK(!load(env, &bytes, &model, NULL));
    CHECK(ort_graph_inline_functions(model->graph, &err) == ORT_ERROR_MODEL);
    CHECK(strstr(err.message, "calls itself"));
    ort_model_free(model);
    ort_strbuf_release(&bytes);
    ort_env_free(env);
}

/* Functions of one name in several domains and overloads. */
static void overloads(test_state *test)
{
    ort_function all[] = {{.name = "f", .domain = "a", .overload = ""},
                          {.name = "g", .domain = "a", .overload = ""},
                          {.name = "f", .domain = "b", .overload = "two"},
                          {.name = "f", .domain = "a", .overload = "two"}};
    ort_model model = {.functions = {all, 4, 4}};
    ort_function_index index;
    CHECK(!ort_functions_index(&model, &index, NULL));
    CHECK(ort_functions_find(&index, "a", "f", "") == &all[0]);
    CHECK(ort_functions_find(&index, "a", "f", "two") == &all[3]);
    CHECK(ort_functions_find(&index, "b", "f", NULL) == &all[2]);
    CHECK(!ort_functions_find(&index, "b", "f", "") && !ort_functions_find(&index, "b", "g", NULL));
    CHECK(!ort_functions_find(&index, "a", "h", NULL));
    ort_functions_index_release(&index);
}

/* ---- saving */

static void saving(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf bytes = {0}, first = {0}, second = {0};
    ort_model *model = NULL, *again = NULL;
    bool equal = false;
    char *said = NULL;
    CHECK(!ort_env_new(NULL, &env, NULL));
    chain(&bytes, 1);
    CHECK(!load(env, &bytes, &model, NULL));
    CHECK(!ort_model_export(model, NULL, keep, &first, NULL));
    CHECK(first.length == bytes.length); /* the unknown field too */
    CHECK(memmem(first.data, first.length, "unknown", 7));

    /* Removing a node writes the graph anew and keeps the rest. */
    model->graph->outputs.count = 1;
    ort_graph_remove_node(model->graph, model->graph->nodes.data[2]);
    CHECK(!ort_model_export(model, NULL, keep, &second, NULL));
    CHECK(!ort_model_load_memory(env, second.data, second.length, NULL, &again, NULL));
    CHECK(again->graph->nodes.count == 2 && again->graph->outputs.count == 1);
    CHECK(memmem(second.data, second.length, "unknown", 7));
    const ort_tensor *w = ort_graph_find_constant(again->graph, "w");
    CHECK(w && w->shape.dim[0] == 10 && ((const float *)w->data)[0] == 1);
    CHECK(!ort_model_diff(model, again, &equal, &said, NULL) && equal);
    ort_text_free(said);
    ort_model_free(again);
    ort_model_free(model);
    ort_strbuf_release(&bytes);
    ort_strbuf_release(&first);
    ort_strbuf_release(&second);
    ort_env_free(env);
}

static void clones(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf bytes = {0};
    ort_model *model = NULL, *copy = NULL;
    CHECK(!ort_env_new(NULL, &env, NULL));
    chain(&bytes, 1);
    CHECK(!load(env, &bytes, &model, NULL) && !ort_model_clone(model, &copy, NULL));
    ort_attr attr = {.name = "axis", .type = ORT_ATTR_INT, .i = 3};
    CHECK(!ort_node_set_attr(copy->graph, copy->graph->nodes.data[0], &attr, NULL));
    ort_graph_remove_node(copy->graph, copy->graph->nodes.data[1]);
    CHECK(!ort_node_has(model->graph->nodes.data[0], "axis"));
    CHECK(!model->graph->nodes.data[1]->removed && !model->graph->changed && copy->graph->changed);
    ort_model_free(model); /* the copy keeps what it shares */
    CHECK_TEXT(copy->graph->nodes.data[0]->op_type, "Relu");
    CHECK(((const float *)ort_graph_find_constant(copy->graph, "w")->data)[0] == 1);
    ort_model_free(copy);
    ort_strbuf_release(&bytes);
    ort_env_free(env);
}

/* ---- comparing and cutting */

static void comparing(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf bytes = {0}, other = {0}, graph = {0}, renamed = {0};
    ort_model *a = NULL, *b = NULL, *c = NULL;
    bool equal;
    char *said = NULL;
    CHECK(!ort_env_new(NULL, &env, NULL));
    chain(&bytes, 1);
    chain(&other, 2);
    node(&graph, 1, "Neg tmp:z", "n0", "");
    node(&graph, 1, "Relu x:tmp", "n1", "");
    node(&graph, 1, "Mul tmp,weights:y", "n2", "");
    weight(&graph, "weights", 1);
    info(&graph, 11, "x");
    info(&graph, 12, "y");
    info(&graph, 12, "z");
    model_of(&renamed, &graph);
    CHECK(!load(env, &bytes, &a, NULL) && !load(env, &other, &b, NULL));
    CHECK(!load(env, &renamed, &c, NULL));
    CHECK(!ort_model_diff(a, c, &equal, &said, NULL) && equal);
    ort_text_free(said);
    CHECK(!ort_model_diff(a, b, &equal, &said, NULL) && !equal);
    CHECK(strstr(said, "'mul'") && strstr(said, "other values") && !strstr(said, "relu"));
    ort_text_free(said);
    ort_model_free(a);
    ort_model_free(b);
    ort_model_free(c);
    ort_strbuf_release(&bytes);
    ort_strbuf_release(&other);
    ort_strbuf_release(&renamed);
    ort_env_free(env);
}

static void cutting(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf bytes = {0};
    ort_model *model = NULL, *part = NULL;
    ort_error err = {0};
    const char *a = "a", *y = "y", *none = "none";
    char type[128];
    CHECK(!ort_env_new(NULL, &env, NULL));
    chain(&bytes, 1);
    CHECK(!load(env, &bytes, &model, NULL));
    CHECK(!ort_model_extract(model, &a, 1, &y, 1, &part, NULL));
    CHECK(part->graph->order.count == 1 && part->graph->inputs.count == 1);
    ort_graph_value *in = part->graph->values.data[part->graph->inputs.data[0]];
    CHECK_TEXT(in->name, "a");
    CHECK_TEXT(ort_type_format(part->dims, &in->fact.type, type, sizeof type), "float[n,3]");
    ort_model_free(part);
    CHECK(ort_model_extract(model, &none, 1, &y, 1, &part, &err) == ORT_ERROR_USAGE && !part);
    CHECK(strstr(err.message, "'none'"));
    CHECK(ort_model_extract(model, &y, 1, &a, 1, &part, &err) == ORT_ERROR_USAGE);
    ort_model_free(model);
    ort_strbuf_release(&bytes);
    ort_env_free(env);
}

/* ---- fixing dims, checking */

static void fixing(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf bytes = {0};
    ort_model *model = NULL;
    ort_error err = {0};
    CHECK(!ort_env_new(NULL, &env, NULL));
    chain(&bytes, 1);
    CHECK(!load(env, &bytes, &model, NULL));
    CHECK(ort_model_set_dim(model, "m", 4, &err) == ORT_ERROR_USAGE && strstr(err.message, "n"));
    CHECK(!ort_model_set_dim(model, "n", 10, NULL));
    CHECK(model->graph->values.data[model->graph->inputs.data[0]]->fact.type.dim[0].size == 10);
    CHECK(ort_model_set_shape(model, "q", 2, (int64_t[]){1, 3}, &err) == ORT_ERROR_USAGE);
    CHECK(ort_model_set_shape(model, "x", 3, (int64_t[]){1, 3, 1}, &err) == ORT_ERROR_USAGE);
    CHECK(!ort_model_set_shape(model, "x", 2, (int64_t[]){-1, 7}, NULL));
    CHECK(model->graph->values.data[model->graph->inputs.data[0]]->fact.type.dim[1].size == 7);
    ort_model_free(model);
    ort_strbuf_release(&bytes);
    ort_env_free(env);
}

static bool found(const ort_findings *findings, const char *what)
{
    for (size_t i = 0; i < ort_findings_count(findings); i++)
        if (strstr(ort_findings_message(findings, i), what))
            return true;
    return false;
}

/* What onnxruntime's tools write against the letter of the format, and what they read. */
static void as_onnxruntime_writes(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf graph = {0}, bytes = {0};
    ort_model *model = NULL;
    ort_findings *findings = NULL;
    ort_error err = {0};
    CHECK(!ort_env_new(NULL, &env, NULL));
    node(&graph, 1, "Relu x:a", "cast", "");
    node(&graph, 1, "Normalizer a:y", "scale", "ai.onnx.ml");
    weight(&graph, "w", 1.0f);
    weight(&graph, "w", 1.0f);
    info(&graph, 11, "x");
    info(&graph, 12, "y");
    ort_wire_put_int(&bytes, 1, 8);
    nest(&bytes, 7, &graph);
    opset(&bytes, 8, "ai.onnx.ml", 3);
    CHECK(!load(env, &bytes, &model, NULL) && !ort_model_check(model, &findings, NULL));
    CHECK(ort_findings_errors(findings) == 0);
    CHECK(found(findings, "no opset of domain 'ai.onnx' but uses it: read as version 28"));
    CHECK(found(findings, "initializer 'w' is there twice"));
    ort_findings_free(findings);
    ort_model_free(model);
    ort_strbuf_release(&bytes);
    node(&graph, 1, "LayerNormalization x,w:y", "norm", "");
    weight(&graph, "w", 1.0f);
    weight(&graph, "w", 2.0f);
    info(&graph, 11, "x");
    info(&graph, 12, "y");
    ort_wire_put_int(&bytes, 1, 8);
    nest(&bytes, 7, &graph);
    opset(&bytes, 8, "", 11);
    CHECK(load(env, &bytes, &model, &err) == ORT_ERROR_MODEL);
    CHECK(strstr(err.message, "'w' is defined twice") && err.count == 1);
    ort_strbuf_release(&bytes);
    ort_env_free(env);
}

static void checking(test_state *test)
{
    ort_env *env = NULL;
    ort_strbuf graph = {0}, bytes = {0};
    ort_model *model = NULL;
    ort_findings *findings = NULL;
    CHECK(!ort_env_new(NULL, &env, NULL));
    node(&graph, 1, "Rellu x:a", "typo", "");
    node(&graph, 1, "Add x:b", "short", "");
    node(&graph, 1, "Gelu x:c", "young", "");
    node(&graph, 1, "Concat x,x:d", "axis", "");
    node(&graph, 1, "Op x:e", "domain", "not.imported");
    node(&graph, 1, "Relu x,x:f", "long", "");
    info(&graph, 11, "x");
    info(&graph, 12, "f");
    model_of(&bytes, &graph);
    CHECK(!load(env, &bytes, &model, NULL) && !ort_model_check(model, &findings, NULL));
    CHECK(ort_findings_errors(findings) == 6);
    CHECK(found(findings, "did you mean Relu") && found(findings, "'typo'"));
    CHECK(found(findings, "node 'short' (Add): has 1 inputs"));
    CHECK(found(findings, "came with opset 20"));
    CHECK(found(findings, "attribute 'axis' is required"));
    CHECK(found(findings, "imports no opset of domain 'not.imported'"));
    CHECK(found(findings, "takes at most 1"));
    ort_findings_free(findings);
    ort_model_free(model);
    ort_strbuf_release(&bytes);
    chain(&bytes, 1);
    CHECK(!load(env, &bytes, &model, NULL) && !ort_model_check(model, &findings, NULL));
    CHECK(ort_findings_errors(findings) == 0);
    ort_findings_free(findings);
    ort_model_free(model);
    ort_strbuf_release(&bytes);
    ort_env_free(env);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, dims);
    RUN(test, problems_at_once);
    RUN(test, sorting);
    RUN(test, numbering);
    RUN(test, readers);
    RUN(test, functions);
    RUN(test, overloads);
    RUN(test, saving);
    RUN(test, clones);
    RUN(test, comparing);
    RUN(test, cutting);
    RUN(test, fixing);
    RUN(test, as_onnxruntime_writes);
    RUN(test, checking);
    return test->failures != 0;
}
