/* test_ops.c - operator libraries linked into the program: what a library sees and may say in each
 * phase, what is refused, who gives what back, and that folding, bodies and concurrent runs treat
 * its operators as built-in ones.
 */
#include <pthread.h>

#include "net.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define SAME_DIMS(x) (x)->rank, (x)->dims

static int alive, created, runs; /* atomic */

static int count(int *counter, int by)
{
    return __atomic_add_fetch(counter, by, __ATOMIC_SEQ_CST);
}

/* ---- operators */

static ort_status same(ort_ops_node *node, ort_error *err)
{
    const ort_ops_tensor *x = node->api->input(node, 0);
    return node->api->set_type(node, 0, x->dtype, SAME_DIMS(x), err);
}

/* Y = X * product of all attributes, which come in every kind; the state counts creations. */
static ort_status all_create(ort_ops_node *node, void **state, ort_error *err)
{
    const ort_ops_api *api = node->api;
    size_t ints, floats, length;
    double product = (double)api->attr_int(node, "i") * (double)api->attr_float(node, "f");
    const int64_t *is = api->attr_ints(node, "is", &ints);
    const float *fs = api->attr_floats(node, "fs", &floats);
    for (size_t i = 0; i < ints; i++)
        product *= (double)is[i];
    for (size_t i = 0; i < floats; i++)
        product *= (double)fs[i];
    const char *s = api->attr_string(node, "s", &length);
    if (length != 2 || strcmp(s, "ab") || api->attr_given(node, "s"))
        return api->fail(err, ORT_ERROR_MODEL, "s is '%s'", s);
    for (size_t i = 0; i < api->attr_count(node, "ss"); i++) {
        s = api->attr_strings_at(node, "ss", i, &length);
        product *= (double)length;
    }
    const ort_ops_tensor *t = api->attr_tensor(node, "t");
    if (t)
        product *= (double)((const float *)t->data)[0];
    if (api->attr_tensor(node, "absent") || api->attr_tensors_at(node, "ts", 0))
        return api->fail(err, ORT_ERROR_MODEL, "a tensor from nowhere");
    double *kept = api->alloc(node, sizeof *kept);
    if (!kept)
        return api->fail(err, ORT_ERROR_MEMORY, "no memory");
    *kept = product;
    *state = kept;
    count(&alive, 1);
    count(&created, 1);
    return ORT_OK;
}

static void all_destroy(void *state)
{
    count(&alive, -1);
}

static ort_status all_run(ort_ops_node *node, void *state, ort_error *err)
{
    const ort_ops_tensor *x = node->api->input(node, 0);
    ort_ops_tensor *y = node->api->output(node, 0, SAME_DIMS(x), err);
    if (!y)
        return err->status;
    count(&runs, 1);
    for (int64_t i = 0; i < x->count; i++)
        ((float *)y->data)[i] = ((const float *)x->data)[i] * (float)*(double *)state;
    return ORT_OK;
}

/* Z = rows of all inputs one after the other, sizes added while they are open. */
static ort_status stack_infer(ort_ops_node *node, ort_error *err)
{
    const ort_ops_tensor *first = node->api->input(node, 0);
    int64_t dims[2] = {0, first->rank == 2 ? first->dims[1] : -1};
    for (int i = 0; i < node->api->input_count(node); i++) {
        const ort_ops_tensor *x = node->api->input(node, i);
        if (x->rank >= 0 && x->rank != 2)
            return node->api->fail(err, ORT_ERROR_RUN, "input %d has rank %d", i, x->rank);
        dims[0] = node->api->dim(node, '+', dims[0], x->rank == 2 ? x->dims[0] : -1);
    }
    return node->api->set_type(node, 0, ORT_DTYPE_UNDEFINED, 2, dims, err);
}

static ort_status stack_run(ort_ops_node *node, void *state, ort_error *err)
{
    int64_t dims[2] = {0, node->api->input(node, 0)->dims[1]};
    for (int i = 0; i < node->api->input_count(node); i++)
        dims[0] += node->api->input(node, i)->dims[0];
    ort_ops_tensor *z = node->api->output(node, 0, 2, dims, err);
    float *to = z ? z->data : NULL;
    for (int i = 0; z && i < node->api->input_count(node); i++) {
        const ort_ops_tensor *x = node->api->input(node, i);
        memcpy(to, x->data, (size_t)x->count * sizeof *to);
        to += x->count;
    }
    return z ? ORT_OK : err->status;
}

/* Two outputs of a shape that only the run knows, no inference; bias may be left out. */
static ort_status split_run(ort_ops_node *node, void *state, ort_error *err)
{
    const ort_ops_tensor *x = node->api->input(node, 0), *bias = node->api->input(node, 1);
    const int64_t half = x->count / 2, rest = x->count - half;
    ort_ops_tensor *a = node->api->output(node, 0, 1, &half, err);
    ort_ops_tensor *b = node->api->output(node, 1, 1, &rest, err);
    if (!a || !b)
        return err->status;
    for (int64_t i = 0; i < x->count; i++) {
        float v = ((const float *)x->data)[i] + (bias ? *(const float *)bias->data : 0);
        if (i < half)
            ((float *)a->data)[i] = v;
        else
            ((float *)b->data)[i - half] = v;
    }
    return ORT_OK;
}

typedef struct fill {
    const ort_ops_tensor *x;
    float *y;
} fill;

static void fill_task(void *arg, size_t task, int thread)
{
    const fill *f = arg;
    f->y[task] = 2 * ((const float *)f->x->data)[task];
}

static ort_status twice_run(ort_ops_node *node, void *state, ort_error *err)
{
    const ort_ops_tensor *x = node->api->input(node, 0);
    ort_ops_tensor *y = node->api->output(node, 0, SAME_DIMS(x), err);
    if (!y || node->api->threads(node) < 1 || !node->api->alloc(node, 100))
        return node->api->fail(err, ORT_ERROR_RUN, "no output, threads or memory");
    fill f = {x, y->data};
    node->api->parallel(node, (size_t)x->count, fill_task, &f);
    return node->api->cancelled(node) ? ORT_ERROR_CANCELLED : ORT_OK;
}

/* What goes wrong, by attribute "how". */
static ort_status wrong_run(ort_ops_node *node, void *state, ort_error *err)
{
    const ort_ops_api *api = node->api;
    const ort_ops_tensor *x = api->input(node, 0);
    switch (api->attr_int(node, "how")) {
    case 0: return api->fail(err, ORT_ERROR_RUN, "the kernel's own words");
    case 1: return ORT_ERROR_RUN; /* silent */
    case 2: return ORT_OK;        /* no output */
    case 3: api->attr_int(node, "who"); break;
    case 4: return api->output(node, 0, 0, NULL, err) ? ORT_OK : err->status;
    case 5: api->attr_float(node, "how"); break;
    case 6: return (ort_status)4711;
    case 7: return api->fail(err, ORT_ERROR_CANCELLED, "enough");
    default: return api->output(node, 0, 2, DIMS(-1, 2), err) ? ORT_OK : err->status;
    }
    return api->output(node, 0, SAME_DIMS(x), err) ? ORT_OK : err->status;
}

/* Strings: every element of X, doubled; a left-out element stays "". */
static ort_status echo_run(ort_ops_node *node, void *state, ort_error *err)
{
    const ort_ops_tensor *x = node->api->input(node, 0);
    ort_ops_tensor *y = node->api->output(node, 0, SAME_DIMS(x), err);
    for (int64_t i = 0; y && i < x->count; i++) {
        size_t length;
        char text[64];
        const char *s = node->api->get_string(x, i, &length);
        int n = snprintf(text, sizeof text, "%.*s%.*s", (int)length, s, (int)length, s);
        if (n > 0 && node->api->set_string(node, y, i, text, (size_t)n, err))
            return err->status;
    }
    return y ? ORT_OK : err->status;
}

/* ABI 2: names, attributes that no row lists, types of outputs, a row's data, inputs as values. */
static ort_status names_infer(ort_ops_node *node, ort_error *err)
{
    const ort_ops_api *api = node->api;
    const ort_ops_tensor *x = api->input(node, 0), *y = api->output_type(node, 0);
    int64_t dims[2] = {api->dim_named(node, "n"), x->rank == 2 ? x->dims[1] : -1};
    if (x->rank == 2 && x->dims[0] >= 0) /* a plan's: names are gone */
        dims[0] = x->dims[0];
    const char *size = x->rank == 2 && x->dims[0] < -1 ? api->dim_name(node, x->dims[0]) : "n";
    bool right = !strcmp(size, "n") && !strcmp(api->node_name(node), "who") &&
                 !strcmp(api->input_name(node, 0), "x") && !strcmp(api->input_name(node, 1), "") &&
                 !strcmp(api->output_name(node, 0), "y") && y && y->dtype == ORT_DTYPE_FLOAT &&
                 !strcmp(api->attr_name(node, 0), "extra") && !api->attr_name(node, 1) &&
                 api->attr_kind(node, "extra") == 'i' && !api->attr_kind(node, "none") &&
                 api->attr_int(node, "extra") == 7 && !api->attr_int(node, "none") &&
                 !api->input_value(node, 0);
    if (!right)
        return api->fail(err, ORT_ERROR_MODEL, "a name is wrong: '%s'", size);
    return api->set_type(node, 0, ORT_DTYPE_UNDEFINED, 2, dims, err);
}

static ort_status names_run(ort_ops_node *node, void *state, ort_error *err)
{
    const ort_ops_tensor *x = node->api->input(node, 0);
    ort_ops_tensor *y = node->api->output(node, 0, SAME_DIMS(x), err);
    const ort_value *value = node->api->input_value(node, 0);
    const float *by = node->api->data(node);
    for (int64_t i = 0; y && i < x->count; i++)
        ((float *)y->data)[i] = *by * (float)ort_value_get_double(value, i);
    return y ? ORT_OK : err->status;
}

static const float three = 3;

#define ROW(n, s) .domain = "test", .name = n, .since = 1, .signature = s

static const ort_ops_row rows[] = {
    {ROW("All", "X:T -> Y:T"), .types = "T:f32",
     .attributes = "i:i=2 f:f=0.5 s:s=ab t:t is:is=[2,3] fs:fs=[0.5,4] ss:ss ts:ts absent:t",
     .infer = same, .create = all_create, .destroy = all_destroy, .run = all_run},
    {ROW("Stack", "X*:T -> Z:T"), .types = "T:F", .infer = stack_infer, .run = stack_run},
    {ROW("Split", "X:T,bias?:T -> A:T,B?:T"), .types = "T:f32", .run = split_run},
    {ROW("Twice", "X:f32 -> Y:f32"), .flags = ORT_OPS_IMPURE, .infer = same, .run = twice_run},
    {ROW("Wrong", "X:f32 -> Y:f32"), .attributes = "how:i!", .infer = same, .run = wrong_run},
    {ROW("Echo", "X:str -> Y:str"), .infer = same, .run = echo_run},
    {ROW("Names", "X:f32,Z?:f32 -> Y:f32"), .flags = ORT_OPS_ANY_ATTRIBUTES, .infer = names_infer,
     .run = names_run, .data = &three},
    {ROW("Vague", "X:T -> Y:R"), .types = "T:f32 R:f32,i64", .run = twice_run},
};
static const ort_ops_library library = {.abi = 2, .row_bytes = sizeof *rows, .name = "tester",
                                        .version = "3", .rows = rows,
                                        .row_count = sizeof rows / sizeof *rows};

static bool init(net *n)
{
    ort_opset opset = {.domain = "test", .version = 1};
    ort_error err = {0};
    return net_init(n, NULL) && ort_vec_push(&n->model->opsets, opset) &&
           ort_env_add_ops(n->env, &library, &err) == ORT_OK;
}

static ort_node *custom(net *n, const char *op_type, const char *in, const char *out)
{
    ort_node *node = net_node(n, op_type, in, out);
    node->domain = "test";
    node->opset = 1;
    return node;
}

static double at(const ort_value *value, int64_t index)
{
    return value ? ort_value_get_double(value, index) : -1e30;
}

/* ---- what works */

static void attributes_and_state(test_state *test)
{
    static const ort_string words[] = {{"abc", 3}, {"de", 2}};
    static const float seven = 7;
    net n;
    ort_error err = {0};
    ort_value *y = NULL;
    CHECK(init(&n));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(1, 2));
    ort_node *node = custom(&n, "All", "x", "y");
    ort_attr list = {.name = "ss", .type = ORT_ATTR_STRINGS, .strings = words, .count = 2};
    ort_tensor tensor = {.dtype = ORT_DTYPE_FLOAT, .shape = {0}, .data = (void *)(uintptr_t)&seven};
    ort_attr weight = {.name = "t", .type = ORT_ATTR_TENSOR, .t = &tensor};
    CHECK(ort_node_set_attr(n.graph, node, &list, &err) == ORT_OK);
    CHECK(ort_node_set_attr(n.graph, node, &weight, &err) == ORT_OK);
    net_output(&n, "y");
    created = alive = 0;
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(created == 1 && alive == 1);
    ort_value *x = net_floats(2, DIMS(1, 2), 1, 1);
    CHECK(run_whole(session, &x, &y, NULL, &err) == ORT_OK);
    CHECK(at(y, 0) == 2 * 0.5 * 6 * 2 * 6 * 7 && at(y, 1) == 2 * at(y, 0));
    ort_value_free(x);
    ort_value_free(y);
    ort_session_free(session);
    CHECK(alive == 0);
    net_free(&n);
}

static void names_are_told(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_value *y = NULL;
    CHECK(init(&n));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(-1, 2));
    ort_node *node = custom(&n, "Names", "x", "y");
    ort_attr extra = {.name = "extra", .type = ORT_ATTR_INT, .i = 7};
    node->name = "who";
    CHECK(ort_node_set_attr(n.graph, node, &extra, &err) == ORT_OK);
    net_output(&n, "y");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK_TEXT(ort_session_output_type(session, 0)->text, "float[n,2]");
    ort_value *x = net_floats(2, DIMS(1, 2), 1, 1);
    CHECK(run_whole(session, &x, &y, NULL, &err) == ORT_OK);
    CHECK(at(y, 0) == 3 && at(y, 1) == 6);
    ort_value_free(x);
    ort_value_free(y);
    ort_session_free(session);
    net_free(&n);
}

static void open_sizes_stay_symbols(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_value *y = NULL;
    CHECK(init(&n));
    net_input(&n, "a", ORT_DTYPE_FLOAT, 2, DIMS(-1, -2));
    net_input(&n, "b", ORT_DTYPE_FLOAT, 2, DIMS(3, -2));
    custom(&n, "Stack", "a b a", "y");
    custom(&n, "All", "y", "z");
    net_output(&n, "z");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK_TEXT(ort_session_output_type(session, 0)->text, "float[2*n+3,m]");
    ort_value *in[] = {net_floats(2, DIMS(1, 2), 1, 1), net_floats(2, DIMS(3, 2), 10, 1)};
    CHECK(run_whole(session, in, &y, NULL, &err) == ORT_OK);
    CHECK(ort_value_dims(y)[0] == 5 && at(y, 0) == 12 && at(y, 2) == 120 && at(y, 9) == 24);
    ort_value_free(in[0]);
    ort_value_free(in[1]);
    ort_value_free(y);
    ort_session_free(session);
    net_free(&n);
}

static void shapes_from_the_run(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_value *out[2] = {NULL, NULL};
    CHECK(init(&n));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(-1));
    custom(&n, "Split", "x", "a b");
    custom(&n, "Split", "b x", "c -"); /* bias: the first of x */
    net_node(&n, "Neg", "c", "d");
    net_output(&n, "a");
    net_output(&n, "d");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK_TEXT(ort_session_output_type(session, 0)->text, "float[...]");
    for (int64_t size = 0; size < 9; size += 4) {
        ort_value *x = net_floats(1, DIMS(size), 1, 1);
        if (size) {
            CHECK(run_whole(session, &x, out, NULL, &err) == ORT_OK);
            CHECK(ort_value_count(out[0]) == size / 2 && ort_value_count(out[1]) == size / 4);
            CHECK(at(out[0], 0) == 1 && at(out[1], 0) == -(double)(size / 2 + 2));
        }
        for (int i = 0; i < 2; i++) {
            ort_value_free(out[i]);
            out[i] = NULL;
        }
        ort_value_free(x);
    }
    ort_session_free(session);
    net_free(&n);
}

/* Computed once while loading; an impure operator is not. */
static void folded_while_loading(test_state *test)
{
    static const float data[] = {1, 2};
    net n;
    ort_error err = {0};
    ort_value *out[2] = {NULL, NULL};
    CHECK(init(&n));
    net_constant(&n, "c", ORT_DTYPE_FLOAT, 2, DIMS(1, 2), data);
    custom(&n, "All", "c", "y");
    custom(&n, "Twice", "c", "z");
    net_output(&n, "y");
    net_output(&n, "z");
    created = alive = 0;
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(created > 0);
    int before = runs;
    CHECK(before > 0);
    CHECK(run_whole(session, NULL, out, NULL, &err) == ORT_OK);
    CHECK(runs == before);
    CHECK(at(out[0], 1) == 24 && at(out[1], 1) == 4);
    ort_value_free(out[0]);
    ort_value_free(out[1]);
    ort_session_free(session);
    CHECK(alive == 0);
    net_free(&n);
}

static void in_a_body(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_value *y = NULL;
    CHECK(init(&n));
    net_input(&n, "cond", ORT_DTYPE_BOOL, 0, NULL);
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(-1));
    ort_node *node = net_node(&n, "If", "cond", "y");
    net_body(&n, node, "then_branch");
    custom(&n, "Twice", "x", "t");
    net_output(&n, "t");
    net_end(&n);
    net_body(&n, node, "else_branch");
    custom(&n, "Split", "x", "e -");
    net_output(&n, "e");
    net_end(&n);
    net_output(&n, "y");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    for (int cond = 0; cond < 2; cond++) {
        ort_value *in[] = {net_scalar(ORT_DTYPE_BOOL, cond), net_floats(1, DIMS(4), 3, 1)};
        CHECK(run_whole(session, in, &y, NULL, &err) == ORT_OK);
        CHECK(ort_value_count(y) == (cond ? 4 : 2) && at(y, 0) == (cond ? 6 : 3));
        ort_value_free(in[0]);
        ort_value_free(in[1]);
        ort_value_free(y);
        y = NULL;
    }
    ort_session_free(session);
    net_free(&n);
}

static void strings_belong_to_the_result(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_value *x = NULL, *y = NULL;
    size_t length;
    CHECK(init(&n));
    net_input(&n, "x", ORT_DTYPE_STRING, 1, DIMS(-1));
    custom(&n, "Echo", "x", "e");
    custom(&n, "Echo", "e", "y");
    net_output(&n, "y");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(ort_value_new_tensor(ORT_DTYPE_STRING, 1, DIMS(2), &x, &err) == ORT_OK);
    CHECK(ort_value_set_string(x, 1, "ab", 2, &err) == ORT_OK);
    CHECK(run_whole(session, &x, &y, NULL, &err) == ORT_OK);
    ort_session_free(session);
    ort_value_free(x);
    CHECK(!memcmp(ort_value_string(y, 1, &length), "abababab", 8) && length == 8);
    (void)ort_value_string(y, 0, &length);
    CHECK(length == 0);
    ort_value_free(y);
    net_free(&n);
}

typedef struct racer {
    ort_session *session;
    bool ok;
} racer;

static void *race(void *arg)
{
    racer *r = arg;
    r->ok = true;
    for (int i = 1; i <= 50; i++) {
        ort_value *x = net_floats(1, DIMS(1000), (float)i, 1), *y = NULL;
        r->ok = r->ok && run_whole(r->session, &x, &y, NULL, NULL) == ORT_OK &&
                at(y, 999) == 24.0 * (i + 999);
        ort_value_free(x);
        ort_value_free(y);
    }
    return NULL;
}

static void concurrent_runs(test_state *test)
{
    net n;
    ort_error err = {0};
    pthread_t threads[4];
    racer racers[4];
    CHECK(init(&n));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(-1));
    custom(&n, "Twice", "x", "t");
    custom(&n, "All", "t", "y");
    net_output(&n, "y");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    for (int i = 0; i < 4; i++) {
        racers[i].session = session;
        pthread_create(&threads[i], NULL, race, &racers[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        CHECK(racers[i].ok);
    ort_session_free(session);
    net_free(&n);
}

/* ---- what the library does wrong */

static void run_says(test_state *test, int how, ort_status status, const char *text)
{
    net n;
    ort_error err = {0};
    ort_value *y = NULL;
    CHECK(init(&n));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(-1));
    net_int(&n, custom(&n, "Wrong", "x", "y"), "how", how);
    net_output(&n, "y");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    ort_value *x = net_floats(1, DIMS(4), 3, 1);
    CHECK(run_whole(session, &x, &y, NULL, &err) == status);
    CHECK_TEXT(err.message, text);
    ort_value_free(x);
    ort_session_free(session);
    net_free(&n);
}

static void faults_of_run_are_told(test_state *test)
{
#define WRONG "node 'y' (Wrong): "
    static const struct {
        int how;
        ort_status status;
        const char *text;
    } cases[] = {
        {0, ORT_ERROR_RUN, WRONG "the kernel's own words"},
        {1, ORT_ERROR_RUN, WRONG "operator library 'tester': run failed and says nothing"},
        {2, ORT_ERROR_RUN,
         WRONG "operator library 'tester': run has not asked for the memory of output 0"},
        {3, ORT_ERROR_RUN,
         WRONG "operator library 'tester': it asks for attribute 'who', which its row doesn't "
               "list"},
        {4, ORT_ERROR_RUN,
         WRONG "operator library 'tester': run asks for output 0 as [], infer said 4; a shape that "
               "depends on data needs ORT_OPS_DYNAMIC"},
        {5, ORT_ERROR_RUN,
         WRONG "operator library 'tester': it reads attribute 'how' as another kind than its row "
               "says"},
        {6, ORT_ERROR_RUN, WRONG "operator library 'tester': run failed and says nothing"},
        {7, ORT_ERROR_CANCELLED, "enough"},
        {8, ORT_ERROR_RUN, WRONG "shape -1x2 has a negative dimension"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_says(test, cases[i].how, cases[i].status, cases[i].text);
        if (test->failed)
            return;
    }
}

static void load_says(test_state *test, const char *op_type, ort_dtype dtype, int rank,
                      const char *text)
{
    net n;
    ort_error err = {0};
    CHECK(init(&n));
    net_input(&n, "x", dtype, rank, DIMS(4, 4));
    custom(&n, op_type, "x", "y");
    net_output(&n, "y");
    CHECK(net_session(&n, NULL, &err) == NULL);
    CHECK_TEXT(err.message, text);
    net_free(&n);
}

static void faults_of_a_model_are_told(test_state *test)
{
    load_says(test, "Vague", ORT_DTYPE_FLOAT, 1,
              "node 'y' (Vague): the element type of output 0 is not known: neither the signature "
              "X:T -> Y:R nor inference nor the model says it");
    if (!test->failed)
        load_says(test, "Stack", ORT_DTYPE_FLOAT, 1, "node 'y' (Stack): input 0 has rank 1");
    if (!test->failed)
        load_says(test, "Wrong", ORT_DTYPE_FLOAT, 1,
                  "node 'y' (Wrong): attribute 'how' is required, but missing");
    if (!test->failed)
        load_says(test, "Twice", ORT_DTYPE_INT64, 1,
                  "node 'y' (Twice): input 0 (X) is int64[4], Twice-1 takes f32\n"
                  "node 'y' (Twice): output 0 (Y) is int64[4], Twice-1 takes f32");
    if (!test->failed)
        load_says(test, "Nope", ORT_DTYPE_FLOAT, 1,
                  "node 'y' (Nope): operator test.Nope of opset 1 is unknown");
}

/* ---- registration */

static ort_status add(ort_ops_row row, ort_error *err)
{
    ort_env *env = NULL;
    ort_ops_row two[] = {{ROW("Fine", "X:f32 -> Y:f32"), .run = twice_run}, row};
    const ort_ops_library tried = {.abi = 1, .row_bytes = sizeof row, .name = "tried", .rows = two,
                                   .row_count = 2};
    err->message[0] = '\0';
    if (ort_env_new(NULL, &env, NULL))
        return ORT_ERROR_MEMORY;
    size_t before = ort_registry_count(env->registry);
    ort_status status = ort_env_add_ops(env, &tried, err);
    /* All or nothing. */
    if (ort_registry_count(env->registry) != before + (status != ORT_OK ? 0 : 2) ||
        !ort_registry_find(env->registry, "test", "Fine", 1) != (status != ORT_OK))
        status = ORT_STATUS_COUNT;
    ort_env_free(env);
    return status;
}

static void bad_rows_are_refused(test_state *test)
{
#define TRY(...) ((ort_ops_row){.domain = "test", .since = 1, .run = twice_run, __VA_ARGS__})
#define FREE(d, n, v, r)                                                                           \
    ((ort_ops_row){.domain = d, .name = n, .since = v, .signature = "X:f32 -> Y:f32", .run = r})
    const struct {
        ort_ops_row row;
        const char *part;
    } cases[] = {
        {TRY(.name = "A", .signature = "X:T -> Y:T", .types = "T:f31"), "'f31' is no element type"},
        {TRY(.name = "A", .signature = "X:T -> Y:V", .types = "T:f32"), "neither a variable"},
        {TRY(.name = "A", .signature = "X:T -> Y:T", .types = "T f32"), "is not \"T:f32,i64\""},
        {TRY(.name = "A", .signature = "X:f32"), "is not of the form"},
        {TRY(.name = "A", .signature = "X:f32 => Y:f32"), "is not of the form"},
        {TRY(.name = "A", .signature = "X:f32, W:f32 -> Y:f32"), "is not of the form"},
        {TRY(.name = "A", .signature = "X -> Y:f32"), "'X -> Y' is no name"},
        {TRY(.name = "A", .signature = "X*:f32,W:f32 -> Y:f32"), "not the last"},
        {TRY(.name = "A", .signature = "X:f32 -> "), "has no output"},
        {TRY(.name = "A", .signature = NULL), "is not of the form"},
        {TRY(.name = "A", .signature = "X:seq(f32) -> Y:f32"), "neither a variable"},
        {TRY(.name = "A", .signature = "X:f32 -> Y:f32", .attributes = "a:q"), "don't parse"},
        {TRY(.name = "A", .signature = "X:f32 -> Y:f32", .attributes = "a:g"), "of a kind"},
        {TRY(.name = "A", .signature = "X:f32 -> Y:f32", .attributes = "a:i=x"), "default 'x'"},
        {TRY(.name = "A", .signature = "X:f32 -> Y:f32", .attributes = "a:is=[1,]"), "default"},
        {TRY(.name = "A", .signature = "X:f32 -> Y:f32", .attributes = "a:i a:f"), "twice"},
        {TRY(.name = "A b", .signature = "X:f32 -> Y:f32"), "identifier"},
        {TRY(.name = "A", .signature = "X:f32 -> Y:f32", .flags = 64), "flags 0x40"},
        {FREE("test", "A", 1, NULL), "no run"},
        {FREE("test", "A", 0, twice_run), "since is 0"},
        {FREE("a:b", "A", 1, twice_run), "can't be a domain"},
        {FREE(ORT_INTERNAL, "A", 1, twice_run), "can't be"},
        {FREE("ai.onnx", "Relu", 1, twice_run),
         "operator Relu of 'ai.onnx' is built in (since 6, 13, 14)"},
        {FREE("", "Relu", 7, twice_run), "built in"},
        {TRY(.name = "Fine", .signature = "X:f32 -> Y:f32"), "has two rows"},
    };
    ort_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ort_status status = add(cases[i].row, &err);
        snprintf(test->why, sizeof test->why, "case %zu: status %d, '%.200s'", i, (int)status,
                 err.message);
        test->failed = status != ORT_ERROR_USAGE || !strstr(err.message, cases[i].part);
        if (test->failed)
            return;
    }
    CHECK(add(FREE("test", "Fine", 2, twice_run), &err) == ORT_OK);
    CHECK(add(TRY(.name = "A", .signature = "X:F8,W*0:T -> Y:T", .types = "T:F,bf16,I,U,str",
                  .attributes = "a:is=[] b:fs=[1, 2.5] c:ts d:s=x"), &err) == ORT_OK);
}

static void versions_of_the_interface(test_state *test)
{
    struct {
        ort_ops_row row;
        void *later;
    } longer = {{ROW("Longer", "X:f32 -> Y:f32"), .run = twice_run}, NULL};
    ort_ops_library tried = {.abi = 1, .row_bytes = sizeof longer, .name = "tried",
                             .rows = &longer.row, .row_count = 1};
    ort_env *env = NULL;
    ort_error err = {0};
    CHECK(ort_env_new(NULL, &env, NULL) == ORT_OK);
    tried.abi = ORT_OPS_ABI + 1;
    CHECK(ort_env_add_ops(env, &tried, &err) == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "was built for ABI 3, this runtime (0.1.0) has 2"));
    tried.abi = 0;
    CHECK(ort_env_add_ops(env, &tried, &err) == ORT_ERROR_USAGE);
    tried.abi = 1;
    longer.later = &tried; /* uses what this runtime doesn't know */
    CHECK(ort_env_add_ops(env, &tried, &err) == ORT_ERROR_USAGE);
    CHECK(strstr(err.message, "members that came after ABI 2"));
    longer.later = NULL;
    CHECK(ort_env_add_ops(env, &tried, &err) == ORT_OK);
    CHECK(ort_env_add_ops(env, &tried, &err) == ORT_ERROR_USAGE);
    CHECK_TEXT(err.message, "the operator library is already added");
    ort_ops_library again = tried;
    CHECK(ort_env_add_ops(env, &again, &err) == ORT_ERROR_USAGE);
    CHECK_TEXT(err.message, "operator Longer of 'test', version 1, is already added by operator "
                            "library 'tried'");
    ort_env_free(env);
}

/* A model is optimized, the environment freed, its library unloaded, and the model saved. */
static void a_model_outlives_the_library(test_state *test)
{
    char name[] = "Leaving";
    const ort_ops_row row = {ROW(name, "X:f32 -> Y:f32"), .infer = same, .run = twice_run};
    const ort_ops_library leaving = {.abi = 1, .row_bytes = sizeof row, .name = "leaving",
                                     .version = "1", .rows = &row, .row_count = 1};
    net n;
    ort_error err = {0};
    ort_optimize_options options;
    CHECK(init(&n) && ort_env_add_ops(n.env, &leaving, &err) == ORT_OK);
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, DIMS(2));
    const ort_node *node = custom(&n, "Leaving", "x", "y");
    net_output(&n, "y");
    ort_optimize_options_init(&options);
    CHECK(ort_model_optimize(n.env, n.model, &options, &err) == ORT_OK);
    CHECK(node->op && !node->removed);
    ort_env_free(n.env);
    n.env = NULL;
    memset(name, '?', sizeof name - 1);
    CHECK_TEXT(node->op_type, "Leaving");
    net_free(&n);
}

/* A single operator by name, without a model: nothing has been checked before. */
static void as_a_single_operator(test_state *test)
{
    ort_env *env = NULL;
    ort_error err = {0};
    ort_value *x = net_floats(1, DIMS(3), 1, 1), *y = NULL;
    const ort_attribute_spec how = {.name = "how", .kind = 'i', .i = 0};
    CHECK(ort_env_new(NULL, &env, NULL) == ORT_OK);
    CHECK(ort_env_add_ops(env, &library, &err) == ORT_OK);
    CHECK(ort_op_run(env, "test", "Twice", 1, NULL, 0, &x, 1, &y, 1, &err) == ORT_OK);
    CHECK(at(y, 2) == 6);
    ort_value_free(y);
    CHECK(ort_op_run(env, "test", "Wrong", 1, &how, 1, &x, 1, &y, 1, &err) == ORT_ERROR_RUN);
    CHECK(ort_op_run(env, "test", "Wrong", 1, NULL, 0, &x, 1, &y, 1, &err) == ORT_ERROR_DATA);
    CHECK(ort_op_run(env, "test", "Twice", 1, NULL, 0, NULL, 0, &y, 1, &err) == ORT_ERROR_DATA);
    CHECK(ort_op_run(env, "test", "Echo", 1, NULL, 0, &x, 1, &y, 1, &err) == ORT_ERROR_DATA);
    ort_value_free(x);
    ort_env_free(env);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, attributes_and_state);
    RUN(&test, names_are_told);
    RUN(&test, open_sizes_stay_symbols);
    RUN(&test, shapes_from_the_run);
    RUN(&test, folded_while_loading);
    RUN(&test, in_a_body);
    RUN(&test, strings_belong_to_the_result);
    RUN(&test, concurrent_runs);
    RUN(&test, faults_of_run_are_told);
    RUN(&test, faults_of_a_model_are_told);
    RUN(&test, bad_rows_are_refused);
    RUN(&test, versions_of_the_interface);
    RUN(&test, a_model_outlives_the_library);
    RUN(&test, as_a_single_operator);
    return test.failures > 0;
}
