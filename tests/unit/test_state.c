/* test_state.c - states of a binding: what runs with states compute is, to the bit, what runs
 * compute whose outputs are fed back by hand; caches grow in place where only attention sees them.
 */
#include "net.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
enum { HEADS = 2, SIZE = 4, WIDTH = HEADS * SIZE, STATES = 2 };

/* Allocations are counted where the linker wraps them (Makefile). */
static int allocations;
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    allocations++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    allocations++;
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    allocations++;
    return __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    allocations++;
    return __real_aligned_alloc(alignment, bytes);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    allocations++;
    return __real_posix_memalign(memory, alignment, bytes);
}

/* ---- models: x [batch, tokens, WIDTH] and the states a, b -> y, a2, b2 */

typedef enum kind {
    PLAIN,    /* attention over caches that nobody else reads */
    GROUPED,  /* four query heads over two */
    SHAPED,   /* the number of rows is a result */
    MASKED,   /* a mask made of the number of rows */
    READ,     /* a present cache is read by another node */
    JOINED,   /* caches extended by Concat, read by other nodes */
    STEADY,   /* a is added to, b is given back as it is */
    MULTI,    /* MultiHeadAttention */
    GROUP,    /* GroupQueryAttention, its counts made of shapes */
    PACKED,   /* Attention of com.microsoft: keys and values in a, b as STEADY */
    KINDS,
} kind;

static const bool grows[KINDS] = {[PLAIN] = true, [GROUPED] = true, [SHAPED] = true,
                                  [MASKED] = true, [MULTI] = true, [GROUP] = true,
                                  [PACKED] = true};

static ort_node *attention(net *n, const char *in, int64_t q_heads)
{
    ort_node *node = net_node(n, "Attention", in, "y a2 b2");
    net_int(n, node, "q_num_heads", q_heads);
    net_int(n, node, "kv_num_heads", HEADS);
    return node;
}

/* rows: [1], past and new ones, by the shape of a. */
static void build_rows(net *n)
{
    const int64_t one[] = {1}, two[] = {2}, three[] = {3};
    net_constant(n, "one", ORT_DTYPE_INT64, 1, DIMS(1), one);
    net_constant(n, "two", ORT_DTYPE_INT64, 1, DIMS(1), two);
    net_constant(n, "three", ORT_DTYPE_INT64, 1, DIMS(1), three);
    net_node(n, "Shape", "a", "a_dims");
    net_node(n, "Slice", "a_dims two three", "a_rows");
    net_node(n, "Shape", "x", "x_dims");
    net_node(n, "Slice", "x_dims one two", "x_rows");
    net_node(n, "Add", "a_rows x_rows", "rows");
}

/* 0 where a query may look: zeros of [1, rows]. */
static void build_mask(net *n)
{
    build_rows(n);
    net_int(n, net_node(n, "Concat", "one rows", "mask_dims"), "axis", 0);
    net_node(n, "ConstantOfShape", "mask_dims", "mask");
}

static void build_contrib(net *n, kind k)
{
    const int64_t zero[] = {0};
    ort_node *node;
    if (k == GROUP) {
        build_rows(n);
        net_node(n, "Sub", "rows one", "last");
        net_constant(n, "zero", ORT_DTYPE_INT64, 1, DIMS(1), zero);
        net_node(n, "Slice", "x_dims zero one", "batch");
        net_node(n, "Expand", "last batch", "lasts");
        net_int(n, net_node(n, "Cast", "lasts", "lengths"), "to", ORT_DTYPE_INT32);
        net_int(n, net_node(n, "Cast", "rows", "total"), "to", ORT_DTYPE_INT32);
        node = net_node_of(n, MS, "GroupQueryAttention", "x x x a b lengths total", "y a2 b2");
        net_int(n, node, "kv_num_heads", HEADS);
    } else if (k == MULTI) {
        node = net_node_of(n, MS, "MultiHeadAttention", "x x x - - - a b", "y a2 b2");
    } else {
        float weights[WIDTH * 3 * WIDTH];
        for (int i = 0; i < WIDTH * 3 * WIDTH; i++)
            weights[i] = (float)(i * 29 % 31 - 15) / 16;
        net_constant(n, "w", ORT_DTYPE_FLOAT, 2, DIMS(WIDTH, 3 * WIDTH), weights);
        node = net_node_of(n, MS, "Attention", "x w - - a", "y a2");
        net_int(n, node, "unidirectional", 1);
        net_node(n, "Identity", "b", "b2");
    }
    net_int(n, node, "num_heads", HEADS);
}

static void build_attention(net *n, kind k)
{
    int64_t width = k == GROUPED ? 2 * WIDTH : WIDTH;
    if (k == GROUPED) {
        net_int(n, net_node(n, "Concat", "x x", "q"), "axis", 2);
    }
    if (k == MASKED)
        build_mask(n);
    ort_node *node = attention(n, k == GROUPED  ? "q x x - a b"
                                  : k == MASKED ? "x x x mask a b"
                                                : "x x x - a b", width / SIZE);
    net_int(n, node, "is_causal", k != MASKED);
    if (k == SHAPED)
        net_node(n, "Shape", "a", "dims");
    if (k == READ)
        net_node(n, "Neg", "a2", "negative");
}

static void build(net *n, kind k, ort_dtype dtype)
{
    ort_opset contrib = {.domain = MS, .version = 1};
    n->model->opsets.data[0].version = 23;
    (void)!ort_vec_push(&n->model->opsets, contrib);
    net_input(n, "x", dtype, 3, DIMS(-1, -3, WIDTH));
    if (k == STEADY) {
        net_input(n, "a", dtype, 3, DIMS(-1, 1, WIDTH));
        net_input(n, "b", dtype, 2, DIMS(-1, 3));
        net_node(n, "Add", "x a", "a2");
        net_node(n, "Identity", "b", "b2");
        net_node(n, "Neg", "a2", "y");
    } else if (k == JOINED) {
        net_input(n, "a", dtype, 3, DIMS(-1, -2, WIDTH));
        net_input(n, "b", dtype, 3, DIMS(-1, -2, WIDTH));
        net_int(n, net_node(n, "Concat", "a x", "a2"), "axis", 1);
        net_int(n, net_node(n, "Concat", "b x", "b2"), "axis", 1);
        net_node(n, "Mul", "a2 b2", "y");
    } else if (k == PACKED) {
        net_input(n, "a", dtype, 5, DIMS(2, -1, HEADS, -2, SIZE));
        net_input(n, "b", dtype, 2, DIMS(-1, 3));
        build_contrib(n, k);
    } else if (k == MULTI || k == GROUP) {
        net_input(n, "a", dtype, 4, DIMS(-1, HEADS, -2, SIZE));
        net_input(n, "b", dtype, 4, DIMS(-1, HEADS, -2, SIZE));
        build_contrib(n, k);
    } else {
        net_input(n, "a", dtype, 4, DIMS(-1, HEADS, -2, SIZE));
        net_input(n, "b", dtype, 4, DIMS(-1, HEADS, -2, SIZE));
        build_attention(n, k);
    }
    net_output(n, "y");
    net_output(n, "a2");
    net_output(n, "b2");
    if (k == SHAPED)
        net_output(n, "dims");
    if (k == READ)
        net_output(n, "negative");
}

/* ---- runs beside each other */

typedef struct pair {
    net n;
    ort_session *session;
    ort_binding *binding;
    ort_value *in[1 + STATES], *out[8]; /* of the runs without states */
    size_t outputs;
    ort_dtype dtype;
} pair;

static ort_value *numbers(ort_dtype dtype, int rank, const int64_t *dims, int seed)
{
    ort_value *value = NULL;
    if (ort_value_new_tensor(dtype, rank, dims, &value, NULL))
        return NULL;
    for (int64_t i = 0; i < ort_value_count(value); i++)
        ort_value_set_double(value, i, (double)((i * 37 + seed * 11) % 101 - 50) / 32);
    return value;
}

static void pair_free(pair *p)
{
    for (int i = 0; i <= STATES; i++)
        ort_value_free(p->in[i]);
    for (size_t o = 0; o < p->outputs; o++)
        ort_value_free(p->out[o]);
    ort_binding_free(p->binding);
    ort_session_free(p->session);
    net_free(&p->n);
}

static bool pair_init(pair *p, kind k, ort_dtype dtype)
{
    ort_error err = {0};
    memset(p, 0, sizeof *p);
    p->dtype = dtype;
    if (!net_init(&p->n, NULL))
        return false;
    build(&p->n, k, dtype);
    p->session = net_session(&p->n, NULL, &err);
    if (!p->session || ort_binding_new(p->session, &p->binding, &err) ||
        ort_binding_set_state(p->binding, "a", "a2", &err) ||
        ort_binding_set_state(p->binding, "b", "b2", &err)) {
        printf("# kind %d: %s\n", k, err.message);
        return false;
    }
    p->outputs = ort_session_output_count(p->session);
    return true;
}

/* The first value of state i for this batch: `rows` rows of a cache. */
static ort_value *first_state(const pair *p, int i, int64_t batch, int64_t rows, int seed)
{
    int64_t dims[5];
    int rank = ort_session_input_dims(p->session, (size_t)i, dims, 5);
    for (int d = 0; d < rank; d++)
        if (dims[d] < 0)
            dims[d] = d == (rank == 5) ? batch : rows;
    return numbers(p->dtype, rank, dims, seed + i);
}

/* Both sides start over: with given states, or (seed < 0) with what a binding makes up. */
static bool restart(pair *p, int64_t batch, int64_t rows, int seed)
{
    for (int i = 1; i <= STATES; i++) {
        ort_value_free(p->in[i]);
        p->in[i] = first_state(p, i, batch, seed < 0 ? 0 : rows, seed);
        for (int64_t e = 0; seed < 0 && e < ort_value_count(p->in[i]); e++)
            ort_value_set_double(p->in[i], e, 0);
        if (!p->in[i] || ort_binding_set_input(p->binding, i == 1 ? "a" : "b",
                                               seed < 0 ? NULL : p->in[i], NULL))
            return false;
    }
    return true;
}

static bool same(const ort_value *a, const ort_value *b)
{
    return a && b && ort_value_rank(a) == ort_value_rank(b) &&
           !memcmp(ort_value_dims(a), ort_value_dims(b),
                   (size_t)ort_value_rank(a) * sizeof(int64_t)) &&
           !memcmp(a->tensor.data, b->tensor.data, ort_tensor_bytes(&a->tensor));
}

/* One step on both sides; `look`: compare the states, too. */
static bool step(pair *p, int64_t batch, int64_t tokens, int seed, bool look)
{
    ort_error err = {0};
    ort_value_free(p->in[0]);
    p->in[0] = numbers(p->dtype, 3, DIMS(batch, tokens, WIDTH), seed);
    for (size_t o = 0; o < p->outputs; o++) {
        ort_value_free(p->out[o]);
        p->out[o] = NULL;
    }
    if (!p->in[0] || ort_binding_set_input(p->binding, "x", p->in[0], &err) ||
        ort_binding_run(p->binding, NULL, &err) ||
        run_whole(p->session, p->in, p->out, NULL, &err)) {
        printf("# %s\n", err.message);
        return false;
    }
    for (size_t o = 0; o < p->outputs; o++)
        if ((o == 0 || o > STATES || look) && !same(ort_binding_output(p->binding, o), p->out[o]))
            return false;
    for (int i = 1; i <= STATES; i++) {
        ort_value_free(p->in[i]);
        p->in[i] = p->out[i];
        p->out[i] = NULL;
    }
    return true;
}

/* A prompt, single tokens, a few at once, beyond the first room for rows. */
static bool steps(pair *p, kind k, int64_t batch)
{
    static const int64_t tokens[] = {5, 1, 1, 3, 1, 50, 1, 1, 1, 1, 1, 70, 1, 2, 1};
    int count = sizeof tokens / sizeof *tokens;
    for (int i = 0; i < count; i++)
        if (!step(p, batch, k == STEADY ? 1 : tokens[i], i, i % 3 == 0 || i + 1 == count)) {
            printf("# kind %d, batch %d, step %d\n", k, (int)batch, i);
            return false;
        }
    return ort_binding_state_grows(p->binding, "a") == grows[k] &&
           ort_binding_state_grows(p->binding, "b") == (grows[k] && k != PACKED);
}

static void as_fed_back(test_state *test)
{
    pair p;
    for (int k = 0; k < KINDS; k++) {
        CHECK(pair_init(&p, (kind)k, ORT_DTYPE_FLOAT));
        CHECK(restart(&p, 1, 0, -1) && steps(&p, (kind)k, 1)); /* nothing given: empty, zeros */
        CHECK(restart(&p, 3, 7, 1) && steps(&p, (kind)k, 3));  /* another batch */
        CHECK(restart(&p, 3, 2, 2) && steps(&p, (kind)k, 3));  /* in the same memory */
        CHECK(restart(&p, 3, 300, 3) && steps(&p, (kind)k, 3));
        CHECK(restart(&p, 2, 0, -1) && steps(&p, (kind)k, 2));
        pair_free(&p);
    }
}

static void of_other_types(test_state *test)
{
    static const ort_dtype dtypes[] = {ORT_DTYPE_FLOAT16, ORT_DTYPE_BFLOAT16, ORT_DTYPE_DOUBLE,
                                       ORT_DTYPE_FLOAT16, ORT_DTYPE_FLOAT16};
    static const kind kinds[] = {PLAIN, PLAIN, PLAIN, MULTI, GROUP};
    pair p;
    for (int d = 0; d < 5; d++) {
        CHECK(pair_init(&p, kinds[d], dtypes[d]));
        CHECK(restart(&p, 2, 3, 1));
        for (int i = 0; i < 6; i++)
            CHECK(step(&p, 2, i ? 1 : 9, i, i % 2));
        pair_free(&p);
    }
}

/* With the rows reserved, steps of one token allocate nothing and make no plan; nor do steps of a
 * state that is handed over. */
static void steady_steps(test_state *test)
{
    static const kind kinds[] = {PLAIN, GROUPED, STEADY, MULTI, PACKED};
    pair p;
    for (int k = 0; k < 5; k++) {
        CHECK(pair_init(&p, kinds[k], ORT_DTYPE_FLOAT));
        ort_binding_reserve_rows(p.binding, 400);
        CHECK(restart(&p, 2, 3, 1));
        CHECK(step(&p, 2, 1, 0, true));
        CHECK(step(&p, 2, 1, 1, false));
        const void *memory = p.binding ? ort_value_data(ort_binding_output(p.binding, 0)) : NULL;
        int before = allocations;
        for (int i = 0; i < 300; i++)
            CHECK(ort_binding_run(p.binding, NULL, NULL) == ORT_OK);
        CHECK(allocations == before);
        CHECK(ort_value_data(ort_binding_output(p.binding, 0)) == memory);
        pair_free(&p);
    }
}

/* Restarting starts from what was given, however often. */
static void restarts(test_state *test)
{
    pair p;
    CHECK(pair_init(&p, PLAIN, ORT_DTYPE_FLOAT));
    CHECK(restart(&p, 1, 4, 1));
    ort_value *first[STATES];
    for (int i = 0; i < STATES; i++)
        first[i] = ort_value_retain(p.in[1 + i]);
    for (int again = 0; again < 3; again++) {
        for (int i = 0; i < 20; i++)
            CHECK(step(&p, 1, 1, i, true));
        ort_binding_restart(p.binding);
        for (int i = 0; i < STATES; i++) {
            ort_value_free(p.in[1 + i]);
            p.in[1 + i] = ort_value_retain(first[i]);
        }
    }
    for (int i = 0; i < STATES; i++)
        ort_value_free(first[i]);
    pair_free(&p);
}

/* GroupQueryAttention over a buffer of the caller that is both past and present, bound as input and
 * as output: rows are written where they belong, and those beyond are not touched. */
static void build_shared(net *n)
{
    const int64_t zero[] = {0}, one[] = {1}, two[] = {2};
    ort_opset contrib = {.domain = MS, .version = 1};
    (void)!ort_vec_push(&n->model->opsets, contrib);
    net_input(n, "x", ORT_DTYPE_FLOAT, 3, DIMS(1, -3, WIDTH));
    net_input(n, "mask", ORT_DTYPE_FLOAT, 2, DIMS(1, -3));
    net_input(n, "a", ORT_DTYPE_FLOAT, 4, DIMS(1, HEADS, -2, SIZE));
    net_input(n, "b", ORT_DTYPE_FLOAT, 4, DIMS(1, HEADS, -2, SIZE));
    net_constant(n, "one", ORT_DTYPE_INT64, 1, DIMS(1), one);
    net_constant(n, "two", ORT_DTYPE_INT64, 1, DIMS(1), two);
    net_constant(n, "zero", ORT_DTYPE_INT64, 1, DIMS(1), zero);
    net_node(n, "Shape", "mask", "dims");
    net_node(n, "Slice", "dims one two", "rows");
    net_node(n, "Sub", "rows one", "last");
    net_int(n, net_node(n, "Cast", "last", "lengths"), "to", ORT_DTYPE_INT32);
    net_int(n, net_node(n, "Cast", "rows", "total"), "to", ORT_DTYPE_INT32);
    ort_node *node = net_node_of(n, MS, "GroupQueryAttention", "x x x a b lengths total",
                                 "y a2 b2");
    net_int(n, node, "num_heads", HEADS);
    net_int(n, node, "kv_num_heads", HEADS);
    net_output(n, "y");
    net_output(n, "a2");
    net_output(n, "b2");
}

static void buffer_of_the_caller(test_state *test)
{
    enum { ROOM = 12, FILLED = 7 };
    static const char *const names[2][2] = {{"a", "a2"}, {"b", "b2"}};
    net n;
    ort_error err = {0};
    ort_binding *binding = NULL;
    ort_value *shared[2], *apart[4] = {0}, *out[3];
    CHECK(net_init(&n, NULL));
    build_shared(&n);
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(ort_binding_new(session, &binding, &err) == ORT_OK);
    for (int i = 0; i < 2; i++) {
        shared[i] = net_floats(4, DIMS(1, HEADS, ROOM, SIZE), 7, 0);
        apart[2 + i] = net_floats(4, DIMS(1, HEADS, ROOM, SIZE), 0, 0);
        CHECK(ort_binding_set_input(binding, names[i][0], shared[i], &err) == ORT_OK);
        CHECK(ort_binding_set_output(binding, names[i][1], shared[i], &err) == ORT_OK);
    }
    for (int64_t rows = 3; rows <= FILLED; rows++) {
        ort_value *x = numbers(ORT_DTYPE_FLOAT, 3, DIMS(1, rows == 3 ? 3 : 1, WIDTH), (int)rows);
        ort_value *mask = net_floats(2, DIMS(1, rows), 1, 0);
        CHECK(ort_binding_set_input(binding, "x", x, &err) == ORT_OK);
        CHECK(ort_binding_set_input(binding, "mask", mask, &err) == ORT_OK);
        CHECK(ort_binding_run(binding, NULL, &err) == ORT_OK);
        apart[0] = x;
        apart[1] = mask;
        memset(out, 0, sizeof out);
        CHECK(run_whole(session, apart, out, NULL, &err) == ORT_OK);
        CHECK(same(ort_binding_output(binding, 0), out[0]));
        for (int i = 0; i < 2; i++) {
            for (int64_t e = 0; e < HEADS * ROOM * SIZE; e++)
                CHECK(ort_value_get_double(shared[i], e) ==
                      (e / SIZE % ROOM < rows ? ort_value_get_double(out[1 + i], e) : 7));
            ort_value_free(apart[2 + i]);
            apart[2 + i] = out[1 + i];
        }
        ort_value_free(out[0]);
        ort_value_free(x);
        ort_value_free(mask);
    }
    for (int i = 0; i < 2; i++) {
        ort_value_free(shared[i]);
        ort_value_free(apart[2 + i]);
    }
    ort_binding_free(binding);
    ort_session_free(session);
    net_free(&n);
}

/* An input with a default that a run overrides: another session takes over, and the rows so far go
 * along. */
static void overridden_default(test_state *test)
{
    const float one[] = {1};
    net n;
    ort_error err = {0};
    ort_binding *binding = NULL;
    ort_value *in[4] = {0}, *out[3];
    CHECK(net_init(&n, NULL));
    n.model->opsets.data[0].version = 23;
    net_input(&n, "x", ORT_DTYPE_FLOAT, 3, DIMS(1, -3, WIDTH));
    net_input(&n, "a", ORT_DTYPE_FLOAT, 4, DIMS(1, HEADS, -2, SIZE));
    net_input(&n, "b", ORT_DTYPE_FLOAT, 4, DIMS(1, HEADS, -2, SIZE));
    ort_id gain = net_constant(&n, "gain", ORT_DTYPE_FLOAT, 1, DIMS(1), one);
    n.graph->values.data[gain]->is_input = true;
    CHECK(ort_vec_push(&n.graph->inputs, gain));
    net_node(&n, "Mul", "x gain", "q");
    attention(&n, "q x x - a b", HEADS);
    net_output(&n, "y");
    net_output(&n, "a2");
    net_output(&n, "b2");
    ort_session *session = net_session(&n, NULL, &err);
    CHECK_TEXT(err.message, "");
    CHECK(ort_binding_new(session, &binding, &err) == ORT_OK);
    CHECK(ort_binding_set_state(binding, "a", "a2", &err) == ORT_OK);
    CHECK(ort_binding_set_state(binding, "b", "b2", &err) == ORT_OK);
    in[1] = net_floats(4, DIMS(1, HEADS, 0, SIZE), 0, 0);
    in[2] = net_floats(4, DIMS(1, HEADS, 0, SIZE), 0, 0);
    for (int i = 0; i < 6; i++) {
        ort_value *own = i >= 2 && i < 4 ? net_floats(1, DIMS(1), 3, 0) : NULL;
        in[0] = numbers(ORT_DTYPE_FLOAT, 3, DIMS(1, i ? 1 : 4, WIDTH), i);
        in[3] = own;
        CHECK(ort_binding_set_input(binding, "x", in[0], &err) == ORT_OK);
        CHECK(ort_binding_set_input(binding, "gain", own, &err) == ORT_OK);
        CHECK(ort_binding_run(binding, NULL, &err) == ORT_OK);
        CHECK(ort_binding_state_grows(binding, "a") == (i < 2));
        memset(out, 0, sizeof out);
        CHECK(run_whole(session, in, out, NULL, &err) == ORT_OK);
        for (size_t o = 0; o < 3; o++)
            CHECK(same(ort_binding_output(binding, o), out[o]));
        for (int k = 0; k < 2; k++) {
            ort_value_free(in[1 + k]);
            in[1 + k] = out[1 + k];
        }
        ort_value_free(out[0]);
        ort_value_free(own);
        ort_value_free(in[0]);
    }
    ort_value_free(in[1]);
    ort_value_free(in[2]);
    ort_binding_free(binding);
    ort_session_free(session);
    net_free(&n);
}

/* A run that fails leaves the states as they were. */
static void failures(test_state *test)
{
    pair p;
    ort_error err = {0};
    CHECK(pair_init(&p, PLAIN, ORT_DTYPE_FLOAT));
    CHECK(restart(&p, 2, 3, 1) && step(&p, 2, 4, 0, true));
    ort_value *wrong = net_floats(3, DIMS(5, 1, WIDTH), 0, 1);
    CHECK(ort_binding_set_input(p.binding, "x", wrong, &err) == ORT_OK);
    CHECK(ort_binding_run(p.binding, NULL, &err) == ORT_ERROR_DATA);
    CHECK(step(&p, 2, 1, 1, true));
    ort_value_free(wrong);
    /* rows that differ between the caches of a step */
    ort_value *long_a = first_state(&p, 1, 2, 9, 1);
    CHECK(ort_binding_set_input(p.binding, "a", long_a, &err) == ORT_OK);
    CHECK(ort_binding_run(p.binding, NULL, &err) != ORT_OK);
    ort_value_free(long_a);
    CHECK(restart(&p, 2, 3, 1) && step(&p, 2, 1, 2, true));
    pair_free(&p);
}

static void refusals(test_state *test)
{
    pair p;
    ort_error err = {0};
    ort_binding *other = NULL;
    CHECK(pair_init(&p, PLAIN, ORT_DTYPE_FLOAT));
    CHECK(ort_binding_set_state(p.binding, "a", "b2", &err) == ORT_ERROR_USAGE);
    CHECK_TEXT(err.message, "input 'a' is a state already");
    CHECK(ort_binding_set_state(p.binding, "x", "a2", &err) == ORT_ERROR_USAGE);
    CHECK_TEXT(err.message, "output 'a2' is the next value of input 'a' already");
    CHECK(ort_binding_set_state(p.binding, "nope", "a2", &err) == ORT_ERROR_USAGE);
    CHECK(ort_binding_new(p.session, &other, &err) == ORT_OK);
    CHECK(ort_binding_set_state(other, "a", "y", &err) == ORT_ERROR_USAGE);
    CHECK_TEXT(err.message, "output 'y' is float[n,x[1],8], which input 'a' (float[n,2,m,4]) can't "
                            "take as its next value");
    ort_value *memory = net_floats(4, DIMS(1, HEADS, 1, SIZE), 0, 0);
    CHECK(ort_binding_set_output(p.binding, "a2", memory, &err) == ORT_ERROR_USAGE);
    CHECK(ort_binding_set_output(other, "a2", memory, &err) == ORT_OK);
    CHECK(ort_binding_set_state(other, "a", "a2", &err) == ORT_ERROR_USAGE);
    CHECK(!ort_binding_state_grows(p.binding, "x"));
    ort_value_free(memory);
    ort_binding_free(other);
    pair_free(&p);
}

/* What one run allocates, the fifth of its shapes. */
static int allocations_of(net *n, ort_value *x, const ort_run_options *options)
{
    ort_session *session = NULL;
    ort_binding *binding = NULL;
    int before = -1, after = -1;
    bool ok = ort_session_new(n->env, n->model, NULL, &session, NULL) == ORT_OK &&
              ort_binding_new(session, &binding, NULL) == ORT_OK &&
              ort_binding_set_input(binding, "x", x, NULL) == ORT_OK;
    for (int i = 0; i < 5 && ok; i++) {
        before = allocations;
        ok = ort_binding_run(binding, options, NULL) == ORT_OK;
        after = allocations;
    }
    ort_binding_free(binding);
    ort_session_free(session);
    return ok ? after - before : -1;
}

/* As ort.h says: none with tensors of numbers, also under limits; some where strings are made. */
static void allocations_of_a_run(test_state *test)
{
    const ort_run_options timed = {.size = sizeof timed, .timeout_s = 100};
    ort_env_options limited = ORT_ENV_OPTIONS_INIT;
    limited.max_memory_bytes = (size_t)64 << 20;
    static const char *const last[] = {"Abs", "NonZero", "Cast"};
    for (int k = 0; k < 3; k++)
        for (int limits = 0; limits < 2; limits++) {
            net n;
            CHECK(net_init(&n, limits ? &limited : NULL));
            net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(-1, 8));
            net_node(&n, "Softmax", "x", "s");
            ort_node *node = net_node(&n, last[k], "s", "y");
            if (k == 2)
                net_int(&n, node, "to", ORT_DTYPE_STRING);
            net_output(&n, "y");
            ort_value *x = net_floats(2, DIMS(3, 8), 0, 0);
            int count = allocations_of(&n, x, limits ? &timed : NULL);
            CHECK(k == 2 ? count > 0 : count == 0);
            ort_value_free(x);
            net_free(&n);
        }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, as_fed_back);
    RUN(&test, of_other_types);
    RUN(&test, steady_steps);
    RUN(&test, allocations_of_a_run);
    RUN(&test, restarts);
    RUN(&test, buffer_of_the_caller);
    RUN(&test, overridden_default);
    RUN(&test, failures);
    RUN(&test, refusals);
    return test.failures != 0;
}
