/* test_runs.c - runs by names and by parts, structs with a size, values that are shared or taken,
 * threads of a session's own: the calls of ort.h that programs build on. */
#include "net.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* Three outputs of two inputs, each with a node of its own. */
static ort_session *three(net *n, const ort_session_options *options, ort_error *err)
{
    if (!net_init(n, NULL))
        return NULL;
    net_input(n, "a", ORT_DTYPE_FLOAT, 1, DIMS(4));
    net_input(n, "b", ORT_DTYPE_FLOAT, 1, DIMS(4));
    net_node(n, "Neg", "a", "minus");
    net_node(n, "Exp", "b", "power");
    net_node(n, "Add", "a b", "sum");
    net_output(n, "minus");
    net_output(n, "power");
    net_output(n, "sum");
    return net_session(n, options, err);
}

static void end_three(net *n, ort_session *s, ort_value **in, ort_value **out)
{
    for (int i = 0; i < 2; i++)
        ort_value_free(in[i]);
    for (int i = 0; i < 3; i++)
        ort_value_free(out[i]);
    ort_session_free(s);
    net_free(n);
}

static void count_node(void *arg, const char *name, const char *op_type, const char *provider,
                       uint64_t begin_ns, uint64_t end_ns)
{
    ++*(int *)arg;
}

static double first(const ort_value *v)
{
    return ort_value_get_double(v, 0);
}

static void by_name(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_session *s = three(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    ort_value *a = net_floats(1, DIMS(4), 1, 1), *b = net_floats(1, DIMS(4), 5, 1);
    const char *in[] = {"b", "a"}, *out[] = {"sum", "minus"};
    ort_value *given[] = {b, a}, *got[2] = {NULL, NULL};
    CHECK(!ort_session_run(s, in, given, 2, out, got, 2, NULL, &err));
    CHECK(first(got[0]) == 6 && first(got[1]) == -1);
    /* the same memory again */
    ort_value *again[] = {got[0], NULL};
    ort_value_set_double(a, 0, 2);
    CHECK(!ort_session_run(s, in, given, 2, out, again, 2, NULL, &err));
    CHECK(again[0] == got[0] && first(got[0]) == 7 && first(again[1]) == -2);
    ort_value_free(again[1]);
    ort_value_free(got[0]);
    ort_value_free(got[1]);
    /* no output at all is fine, an input that is left out isn't */
    CHECK(!ort_session_run(s, in, given, 2, out, NULL, 0, NULL, &err));
    CHECK(ort_session_run(s, in, given, 1, out, got, 1, NULL, &err) == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "input 'a' is missing"));
    ort_value_free(a);
    ort_value_free(b);
    ort_session_free(s);
    net_free(&n);
}

static void unwanted_is_not_computed(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_session_options plain = ORT_SESSION_OPTIONS_INIT;
    int nodes = 0;
    plain.level = 0;
    ort_session *s = three(&n, &plain, &err);
    CHECK_TEXT(err.message, "");
    ort_value *in[] = {net_floats(1, DIMS(4), 1, 1), net_floats(1, DIMS(4), 5, 1)};
    const char *sum = "sum";
    const bool two[] = {true, false, true}, all[] = {true, true, true};
    ort_run_options how = {.size = sizeof how, .on_node = count_node, .callback_arg = &nodes};
    for (int round = 0; round < 3; round++) { /* plans are kept per set of outputs */
        ort_value *y[3] = {NULL, NULL, NULL};
        nodes = 0;
        CHECK(!ort_session_run(s, NULL, in, 2, &sum, y, 1, &how, &err));
        CHECK(nodes == 1 && first(y[0]) == 6);
        ort_value_free(y[0]);
        y[0] = NULL;
        how.wanted = two;
        how.wanted_count = 3;
        CHECK(!ort_session_run(s, NULL, in, 2, NULL, y, 3, &how, &err));
        CHECK(nodes == 3 && first(y[0]) == -1 && !y[1] && first(y[2]) == 6);
        how.wanted = all;
        CHECK(!ort_session_run(s, NULL, in, 2, NULL, y, 3, &how, &err));
        CHECK(nodes == 6 && y[1]);
        for (int i = 0; i < 3; i++)
            ort_value_free(y[i]);
        how.wanted = NULL;
    }
    how.wanted = two;
    how.wanted_count = 2;
    ort_value *y[3] = {NULL, NULL, NULL};
    CHECK(ort_session_run(s, NULL, in, 2, NULL, y, 3, &how, &err) == ORT_ERROR_USAGE);
    how.wanted_count = 3;
    CHECK(ort_session_run(s, NULL, in, 2, &sum, y, 1, &how, &err) == ORT_ERROR_USAGE);
    ort_value_free(in[0]);
    ort_value_free(in[1]);
    ort_session_free(s);
    net_free(&n);
}

static void bindings_want_parts(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_session *s = three(&n, NULL, &err);
    ort_binding *b = NULL;
    ort_value *a = net_floats(1, DIMS(4), 1, 1);
    const bool only[] = {false, false, true};
    ort_run_options how = {.size = sizeof how, .wanted = only, .wanted_count = 3};
    CHECK(s && !ort_binding_new(s, &b, &err) && !ort_binding_set_input(b, "a", a, &err) &&
          !ort_binding_set_input(b, "b", a, &err));
    CHECK(!ort_binding_run(b, &how, &err));
    CHECK(!ort_binding_output(b, 0) && first(ort_binding_output(b, 2)) == 2);
    CHECK(!ort_binding_run(b, NULL, &err) && first(ort_binding_output(b, 0)) == -1);
    ort_value *kept = ort_value_retain(ort_binding_output(b, 0));
    ort_binding_free(b);
    CHECK(first(kept) == -1);
    ort_value_free(kept);
    ort_value_free(a);
    ort_session_free(s);
    net_free(&n);
}

/* More inputs and outputs than stand on the stack. */
static void many_names(test_state *test)
{
    enum { MANY = 70 };
    net n;
    ort_error err = {0};
    char names[MANY][16], outs[MANY][16];
    const char *in[MANY], *out[MANY];
    ort_value *x[MANY], *y[MANY] = {NULL};
    CHECK(net_init(&n, NULL));
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "x%d", i);
        snprintf(outs[i], sizeof outs[i], "y%d", i);
        net_input(&n, names[i], ORT_DTYPE_FLOAT, 1, DIMS(1));
        net_node(&n, "Neg", names[i], outs[i]);
        net_output(&n, outs[i]);
        in[MANY - 1 - i] = names[i];
        out[MANY - 1 - i] = outs[i];
        x[MANY - 1 - i] = net_floats(1, DIMS(1), (float)i, 1);
    }
    ort_session *s = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(!ort_session_run(s, in, x, MANY, out, y, MANY, NULL, &err));
    for (int i = 0; i < MANY; i++) {
        CHECK(first(y[i]) == -(MANY - 1 - i));
        ort_value_free(y[i]);
        ort_value_free(x[i]);
    }
    ort_session_free(s);
    net_free(&n);
}

/* Programs built with another version of ort.h. */
static void sizes_of_structs(test_state *test)
{
    struct {
        ort_run_options known;
        uint64_t later;
    } newer = {.known = {.size = sizeof newer}};
    struct {
        size_t size;
        int threads;
    } older = {sizeof older, 3};
    struct {
        size_t size;
        bool equal;
    } result = {sizeof result, false};
    net n;
    ort_error err = {0};
    ort_env *env = NULL;
    CHECK(!ort_env_new((const ort_env_options *)(const void *)&older, &env, &err));
    CHECK(ort_env_threads(env) == 3);
    ort_env_free(env);
    ort_session *s = three(&n, NULL, &err);
    ort_value *in[] = {net_floats(1, DIMS(4), 1, 1), net_floats(1, DIMS(4), 5, 1)};
    ort_value *y[3] = {NULL, NULL, NULL};
    CHECK(s && !ort_session_run(s, NULL, in, 2, NULL, y, 3, &newer.known, &err));
    newer.later = 1;
    CHECK(ort_session_run(s, NULL, in, 2, NULL, y, 3, &newer.known, &err) == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "asks for something beyond"));
    newer.known.size = 0;
    CHECK(ort_session_run(s, NULL, in, 2, NULL, y, 3, &newer.known, &err) == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "ORT_..._INIT"));
    CHECK(!ort_value_compare(in[0], in[0], NULL, (ort_difference *)(void *)&result, &err));
    CHECK(result.equal && result.size == sizeof result);
    end_three(&n, s, in, y);
}

/* Exporters write a scalar and feeders a vector of one: 16000 and [16000]. */
static void scalar_of_one_element(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "rate", ORT_DTYPE_INT64, 0, NULL);
    net_node(&n, "Shape", "rate", "shape");
    net_node(&n, "Neg", "rate", "minus");
    net_output(&n, "minus");
    net_output(&n, "shape");
    ort_session *s = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    ort_value *x = NULL, *y[2] = {NULL, NULL};
    CHECK(!ort_value_new_tensor(ORT_DTYPE_INT64, 2, DIMS(1, 1), &x, &err));
    ort_value_set_double(x, 0, 16000);
    CHECK(!run_whole(s, &x, y, NULL, &err));
    CHECK(first(y[0]) == -16000 && ort_value_rank(y[0]) == 0 && ort_value_count(y[1]) == 0);
    CHECK(ort_value_rank(x) == 2);
    ort_value_free(x);
    CHECK(!ort_value_new_tensor(ORT_DTYPE_INT64, 1, DIMS(2), &x, &err));
    CHECK(run_whole(s, &x, y, NULL, &err) == ORT_ERROR_DATA);
    ort_value_free(x);
    ort_value_free(y[0]);
    ort_value_free(y[1]);
    ort_session_free(s);
    net_free(&n);
}

static void note_release(void *arg, void *data)
{
    *(void **)arg = data;
}

static void taken_memory(test_state *test)
{
    static float numbers[4] = {1, 2, 3, 4};
    void *released = NULL;
    ort_value *v = NULL;
    CHECK(!ort_value_new_taking(ORT_DTYPE_FLOAT, 1, DIMS(4), numbers, sizeof numbers, note_release,
                                &released, &v, NULL));
    CHECK(ort_value_retain(v) == v);
    ort_value_free(v);
    CHECK(!released && first(v) == 1);
    ort_value_free(v);
    CHECK(released == numbers);
}

/* Large results: given back, they serve the next run; kept, they outlive the session. */
static void memory_of_results(test_state *test)
{
    enum { COUNT = 20000 };
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(-1));
    net_node(&n, "Neg", "x", "minus");
    net_node(&n, "Abs", "x", "size");
    net_output(&n, "minus");
    net_output(&n, "size");
    ort_session *s = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    ort_value *y[2] = {NULL, NULL}, *kept = NULL;
    const void *before[2] = {NULL, NULL};
    for (int round = 0; round < 6; round++) { /* it grows a little, as a cache does */
        ort_value *x = net_floats(1, DIMS(COUNT + round), 1, 1);
        CHECK(!run_whole(s, &x, y, NULL, &err) && ort_value_count(y[1]) == COUNT + round);
        CHECK(first(y[0]) == -1 && ort_value_get_double(y[1], COUNT + round - 1) == COUNT + round);
        CHECK(y[0]->tensor.data != y[1]->tensor.data && (uintptr_t)y[0]->tensor.data % 64 == 0);
        for (int i = 0; i < 2 && round > 0; i++)
            CHECK(y[i]->tensor.data == before[0] || y[i]->tensor.data == before[1]);
        for (int i = 0; i < 2; i++) {
            before[i] = y[i]->tensor.data;
            ort_value_free(y[i]);
            y[i] = NULL;
        }
        ort_value_free(x);
    }
    ort_value *x = net_floats(1, DIMS(4 * COUNT), 1, 1); /* blocks that are kept don't fit */
    CHECK(!run_whole(s, &x, y, NULL, &err) && first(y[0]) == -1);
    kept = ort_value_retain(y[1]);
    ort_value_free(y[0]);
    ort_value_free(y[1]);
    ort_value_free(x);
    ort_session_free(s);
    CHECK(ort_value_get_double(kept, 4 * COUNT - 1) == 4 * COUNT);
    ort_value_free(kept);
    net_free(&n);
}

static void threads_of_its_own(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    options.threads = 3;
    ort_session *s = three(&n, &options, &err);
    CHECK_TEXT(err.message, "");
    CHECK(s->env != n.env && ort_env_threads(s->env) == 3);
    ort_value *in[] = {net_floats(1, DIMS(4), 1, 1), net_floats(1, DIMS(4), 5, 1)};
    ort_value *y[3] = {NULL, NULL, NULL};
    CHECK(!run_whole(s, in, y, NULL, &err) && first(y[2]) == 6);
    end_three(&n, s, in, y);
}

static void types_have_symbols(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    ort_id x = net_input(&n, "x", ORT_DTYPE_FLOAT, 3, DIMS(-1, -1, 5));
    n.model->graph->values.data[x]->fact.type.dim[0] = ort_dim_symbol(n.model->dims, "batch");
    net_node(&n, "Relu", "x", "y");
    net_node(&n, "SequenceConstruct", "y", "list");
    net_output(&n, "y");
    net_output(&n, "list");
    ort_session *s = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    const ort_type_info *in = ort_session_input_type(s, 0), *list = ort_session_output_type(s, 1);
    CHECK(in->kind == ORT_TYPE_TENSOR && in->dtype == ORT_DTYPE_FLOAT && in->rank == 3);
    CHECK_TEXT(in->symbols[0], "batch");
    CHECK(in->dims[0] == -1 && in->dims[1] == -1);
    CHECK(in->dims[2] == 5 && !in->symbols[2] && !in->element);
    CHECK(list->kind == ORT_TYPE_SEQUENCE && list->element->kind == ORT_TYPE_TENSOR);
    CHECK(list->element->dtype == ORT_DTYPE_FLOAT);
    ort_session_free(s);
    net_free(&n);
}

static void weights_and_words(test_state *test)
{
    net n;
    ort_error err = {0};
    const float two = 2;
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(4));
    net_constant(&n, "w", ORT_DTYPE_FLOAT, 0, NULL, &two);
    net_node(&n, "Mul", "x w", "y");
    net_output(&n, "y");
    ort_value *w = net_scalar(ORT_DTYPE_FLOAT, 7), *x = net_floats(1, DIMS(4), 1, 1), *y = NULL;
    CHECK(!ort_model_set_initializer(n.model, "w", w, &err));
    CHECK(ort_model_set_initializer(n.model, "w", x, &err) == ORT_ERROR_DATA);
    CHECK_TEXT(err.message, "initializer 'w' is float [], not float 4");
    CHECK(ort_model_set_initializer(n.model, "x", x, NULL) == ORT_ERROR_USAGE);
    ort_session *s = net_session(&n, NULL, &err);
    CHECK(s && !run_whole(s, &x, &y, NULL, &err) && first(y) == 7);
    CHECK(!ort_model_set_property(n.model, "author", "nobody", &err));
    CHECK(ort_model_property_count(n.model) == 1);
    CHECK_TEXT(ort_model_property_key(n.model, 0), "author");
    CHECK_TEXT(ort_model_property(n.model, "author"), "nobody");
    CHECK(ort_model_opset(n.model, "ai.onnx") == 17 && ort_model_ir_version(n.model) == 8);
    ort_value_free(w);
    ort_value_free(x);
    ort_value_free(y);
    ort_session_free(s);
    net_free(&n);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, by_name);
    RUN(&test, unwanted_is_not_computed);
    RUN(&test, bindings_want_parts);
    RUN(&test, many_names);
    RUN(&test, sizes_of_structs);
    RUN(&test, scalar_of_one_element);
    RUN(&test, taken_memory);
    RUN(&test, memory_of_results);
    RUN(&test, threads_of_its_own);
    RUN(&test, types_have_symbols);
    RUN(&test, weights_and_words);
    return test.failures != 0;
}
