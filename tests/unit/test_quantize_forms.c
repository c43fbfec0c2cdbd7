/* test_quantize_forms.c - cuts between types, a table that a product shares, heads of different
 * ranges in one Concat, what was fused too far, what is excluded.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "levels.h"
#include "op/edit.h"
#include "test.h"

static void add_numbers(net *n, const char *name, int rank, const int64_t *dims, float factor)
{
    ort_value *w = net_floats(rank, dims, 0, 0);
    float *x = ort_value_data(w);
    uint32_t state = (uint8_t)name[0] * 97u + 7u;
    for (int64_t i = 0; i < ort_value_count(w); i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = factor * ((float)(state >> 8) * 0x1p-24f - 0.5f);
    }
    net_constant(n, name, ORT_DTYPE_FLOAT, rank, dims, x);
    ort_value_free(w);
}

static ort_value *sample_of(const net *n)
{
    const ort_graph *graph = n->model->graph;
    const ort_type *type = &graph->values.data[graph->inputs.data[0]]->fact.type;
    int64_t dims[ORT_MAX_RANK];
    ort_value *x = NULL;
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dim[i].size;
    if (ort_value_new_tensor(type->dtype, type->rank, dims, &x, NULL))
        return NULL;
    for (int64_t i = 0; i < ort_value_count(x); i++)
        if (type->dtype == ORT_DTYPE_INT64)
            ((int64_t *)ort_value_data(x))[i] = i % 7;
        else
            ((float *)ort_value_data(x))[i] = (float)(i * 37 % 41) / 20 - 1;
    return x;
}

typedef void builder(net *n);

/* The net quantized, and the quantizer, which the caller frees; NULL: it was refused. */
static ort_model *made_of(net *n, builder *build, const ort_quantize_options *options,
                          ort_quantizer **q, ort_error *err)
{
    ort_model *model = NULL;
    *q = NULL;
    if (!net_init(n, NULL))
        return NULL;
    build(n);
    ort_value *x = sample_of(n);
    if (ort_quantizer_new(n->env, n->model, options, q, err) ||
        ort_quantizer_calibrate(*q, &x, 1, err) || ort_quantizer_apply(*q, &model, err))
        model = NULL;
    ort_value_free(x);
    return model;
}

static int count_of(const ort_model *model, const char *op_type)
{
    int count = 0;
    const ort_node *node;
    ORT_EACH_NODE(model->graph, node)
    {
        count += !strcmp(node->op_type, op_type);
    }
    return count;
}

static bool told(const ort_quantizer *q, const char *op_type, const char *part, const char *why)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    for (size_t i = 0; ort_quantizer_node(q, i, &info); i++)
        if (!strcmp(info.op_type, op_type) && !strcmp(info.part, part) &&
            (!why || (info.why && strstr(info.why, why))))
            return true;
    return false;
}

static void build_fork(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(3, 16));
    add_numbers(n, "a", 2, DIMS(16, 8), 1);
    add_numbers(n, "b", 2, DIMS(16, 8), 1);
    net_node(n, "MatMul", "x a", "left");
    net_node(n, "MatMul", "x b", "right");
    net_output(n, "left");
    net_output(n, "right");
}

/* x becomes codes of 8 bits for one product and of 16 for the other, each from x itself. */
static void cuts(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_quantizer *q;
    ort_quantize_options options = ORT_QUANTIZE_OPTIONS_INIT;
    options.overrides = "{\"schema\": \"ort-overrides/1\", \"overrides\": ["
                        "{\"node\": \"right\", \"type\": \"uint16\", \"weights\": \"int4\"}]}";
    ort_model *m = made_of(&n, build_fork, &options, &q, &err);
    CHECK(m && count_of(m, "QuantizeLinear") == 2 && count_of(m, "DequantizeLinear") == 4);
    ort_id wide = ort_graph_find_value(m->graph, "x_uint16_q");
    ort_id bits = ort_graph_find_value(m->graph, "b_codes");
    CHECK(wide != ORT_ID_NONE && bits != ORT_ID_NONE);
    const ort_node *quantize = ort_edit_producer(m->graph, wide);
    CHECK(m->graph->values.data[quantize->inputs[2]]->fact.type.dtype == ORT_DTYPE_UINT16);
    CHECK(m->graph->values.data[bits]->fact.type.dtype == ORT_DTYPE_INT4);
    ort_model_free(m);
    m = NULL;
    CHECK(!ort_quantizer_override(q, NULL, &err) && !ort_quantizer_apply(q, &m, &err));
    CHECK(m && count_of(m, "QuantizeLinear") == 1);
    ort_model_free(m);
    ort_quantizer_free(q);
    net_free(&n);
}

static void build_tied(net *n)
{
    net_input(n, "ids", ORT_DTYPE_INT64, 2, DIMS(1, 5));
    add_numbers(n, "w", 2, DIMS(64, 80), 1);
    net_node(n, "Gather", "w ids", "rows");
    net_node(n, "Tanh", "rows", "t");
    net_node(n, "Transpose", "w", "turned");
    net_node(n, "MatMul", "t turned", "y");
    net_output(n, "y");
}

static void ties(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_quantizer *q;
    ort_model *m = made_of(&n, build_tied, NULL, &q, &err);
    size_t large = 0;
    CHECK(m && told(q, "Gather", "table", NULL) && told(q, "MatMul", "product", NULL));
    for (size_t i = 0; i < m->graph->initializers.count; i++) {
        const ort_graph_value *v = m->graph->values.data[m->graph->initializers.data[i]];
        large += v->fact.value && ort_tensor_count(v->fact.value) == (int64_t)64 * 80;
    }
    CHECK(large == 1);
    ort_model_free(m);
    ort_quantizer_free(q);
    net_free(&n);
}

static void build_table(net *n)
{
    net_input(n, "ids", ORT_DTYPE_INT64, 2, DIMS(1, 5));
    add_numbers(n, "w", 2, DIMS(64, 80), 1);
    add_numbers(n, "last", 2, DIMS(80, 4), 1);
    net_node(n, "Gather", "w ids", "rows");
    net_node(n, "MatMul", "rows last", "y");
    net_output(n, "y");
}

static int halves_in(const ort_model *m)
{
    int count = 0;
    for (size_t i = 0; i < m->graph->initializers.count; i++)
        count += m->graph->values.data[m->graph->initializers.data[i]]->fact.type.dtype ==
                 ORT_DTYPE_FLOAT16;
    return count;
}

/* The Gather in float16, in float, and on codes again. */
static void halves(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_quantizer *q;
    ort_model *m = made_of(&n, build_table, NULL, &q, &err);
    CHECK(m && halves_in(m) == 0 && told(q, "Gather", "table", NULL));
    ort_model_free(m);
    m = NULL;
    CHECK(!ort_quantizer_keep_half(q, 0, &err) && !ort_quantizer_apply(q, &m, &err));
    CHECK(m && halves_in(m) == 1 && told(q, "Gather", "float", "kept in float16"));
    CHECK(count_of(m, "Cast") == 1 && told(q, "MatMul", "product", NULL));
    ort_model_free(m);
    m = NULL;
    CHECK(!ort_quantizer_keep_float(q, 0, true, &err) && !ort_quantizer_apply(q, &m, &err));
    CHECK(m && halves_in(m) == 0 && told(q, "Gather", "float", "kept float"));
    ort_model_free(m);
    m = NULL;
    CHECK(!ort_quantizer_keep_float(q, 0, false, &err) && !ort_quantizer_apply(q, &m, &err));
    CHECK(m && halves_in(m) == 0 && told(q, "Gather", "table", NULL));
    ort_model_free(m);
    ort_quantizer_free(q);
    net_free(&n);
}

/* Boxes reach 300 times as far as scores, and a product reads both. */
static void build_heads(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(3, 16));
    add_numbers(n, "boxes", 2, DIMS(16, 8), 300);
    add_numbers(n, "scores", 2, DIMS(16, 8), 1);
    add_numbers(n, "last", 2, DIMS(16, 4), 1);
    net_node(n, "MatMul", "x boxes", "b");
    net_node(n, "MatMul", "x scores", "s");
    net_int(n, net_node(n, "Concat", "b s", "both"), "axis", 1);
    net_node(n, "MatMul", "both last", "y");
    net_output(n, "y");
}

static void heads(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_quantizer *q;
    ort_model *m = made_of(&n, build_heads, NULL, &q, &err);
    CHECK(m && told(q, "Concat", "float", "one scale would leave the smaller"));
    CHECK(told(q, "MatMul", "float", "too different") && told(q, "MatMul", "product", NULL));
    CHECK(count_of(m, "QuantizeLinear") == 1); /* x */
    ort_model_free(m);
    ort_quantizer_free(q);
    net_free(&n);
}

static void build_fused(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(3, 16));
    add_numbers(n, "a", 2, DIMS(16, 8), 1);
    net_node_of(n, "com.microsoft", "FusedMatMul", "x a", "y");
    net_output(n, "y");
}

static void order(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_quantizer *q;
    ort_quantize_options options = ORT_QUANTIZE_OPTIONS_INIT;
    CHECK(!made_of(&n, build_fused, NULL, &q, &err));
    CHECK(strstr(err.message, "com.microsoft.FusedMatMul") && strstr(err.message, "--level 1"));
    net_free(&n);
    options.keep_fused = true;
    ort_model *m = made_of(&n, build_fused, &options, &q, &err);
    CHECK(m && told(q, "FusedMatMul", "float", "com.microsoft"));
    ort_model_free(m);
    ort_quantizer_free(q);
    net_free(&n);
}

static void excludes(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_quantizer *q;
    ort_quantize_options options = ORT_QUANTIZE_OPTIONS_INIT;
    options.exclude = (const char *const[]){"rig*", NULL};
    ort_model *m = made_of(&n, build_fork, &options, &q, &err);
    CHECK(m && told(q, "MatMul", "float", "it is excluded") && told(q, "MatMul", "product", NULL));
    CHECK(count_of(m, "QuantizeLinear") == 1 && count_of(m, "DequantizeLinear") == 2);
    ort_model_free(m);
    ort_quantizer_free(q);
    net_free(&n);
    options.exclude = NULL;
    options.include = (const char *const[]){"Conv", NULL};
    CHECK(!made_of(&n, build_fork, &options, &q, &err));
    CHECK(strstr(err.message, "include: no node or operator"));
    net_free(&n);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, cuts);
    RUN(&test, ties);
    RUN(&test, halves);
    RUN(&test, heads);
    RUN(&test, order);
    RUN(&test, excludes);
    return test.failures != 0;
}
