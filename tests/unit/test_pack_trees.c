/* test_pack_trees.c - forests in a pack file: used where they lie without their attribute lists,
 * and, since their nodes name each other, never believed when one of them leads elsewhere. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/pack.h"
#include "net.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define LIST(type, ...)                                                                            \
    ((const type[]){__VA_ARGS__}), sizeof((const type[]){__VA_ARGS__}) / sizeof(type)

enum { OUTPUTS = 3 };

typedef struct bench {
    ort_env *env;
    char folder[64], model[96], pack[112];
    ort_value *x, *y[OUTPUTS]; /* an input and its results without the pack */
    int ignored;
    char line[512];
} bench;

static void listen(void *arg, ort_log_level level, const char *message)
{
    bench *b = arg;
    if (level == ORT_LOG_WARNING && strstr(message, "ignored")) {
        b->ignored++;
        snprintf(b->line, sizeof b->line, "%s", message);
    }
}

static void set_ints(net *n, ort_node *node, const char *name, const int64_t *list, size_t count)
{
    ort_attr attr = {.name = name, .type = ORT_ATTR_INTS, .ints = list, .count = count};
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
}

static void set_floats(net *n, ort_node *node, const char *name, const float *list, size_t count)
{
    ort_attr attr = {.name = name, .type = ORT_ATTR_FLOATS, .floats = list, .count = count};
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
}

static void set_tensor(net *n, ort_node *node, const char *name, ort_dtype dtype,
                       const void *data, size_t count)
{
    ort_tensor tensor = {.dtype = dtype, .shape = {.rank = 1, .dim = {(int64_t)count}}};
    size_t bytes = ort_tensor_bytes(&tensor);
    tensor.data = ort_arena_alloc_aligned(&n->model->arena, bytes, 64, 0);
    memcpy(tensor.data, data, bytes); /* the attribute keeps the pointer */
    ort_attr attr = {.name = name, .type = ORT_ATTR_TENSOR, .t = &tensor};
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
}

/* Two trees: x0 <= 0.1, and x1 > 0.2 with x2 < 0 below it. */
static void set_trees(net *n, ort_node *node)
{
    static const char *const names[] = {"BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT",
                                        "BRANCH_LT", "LEAF", "LEAF", "LEAF"};
    ort_string modes[8];
    for (int i = 0; i < 8; i++)
        modes[i] = (ort_string){(char *)(uintptr_t)names[i], strlen(names[i])};
    ort_attr attr = {.name = "nodes_modes", .type = ORT_ATTR_STRINGS, .strings = modes, .count = 8};
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
    set_ints(n, node, "nodes_treeids", LIST(int64_t, 0, 0, 0, 1, 1, 1, 1, 1));
    set_ints(n, node, "nodes_nodeids", LIST(int64_t, 0, 1, 2, 0, 1, 2, 3, 4));
    set_ints(n, node, "nodes_featureids", LIST(int64_t, 0, 0, 0, 1, 2, 0, 0, 0));
    set_ints(n, node, "nodes_truenodeids", LIST(int64_t, 1, 0, 0, 1, 3, 0, 0, 0));
    set_ints(n, node, "nodes_falsenodeids", LIST(int64_t, 2, 0, 0, 2, 4, 0, 0, 0));
    set_floats(n, node, "nodes_values", LIST(float, 0.1f, 0, 0, 0.2f, 0, 0, 0, 0));
}

static void build(net *n)
{
    ort_opset ml = {.domain = "ai.onnx.ml", .version = 5};
    (void)!ort_vec_push(&n->model->opsets, ml);
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(-1, 3));
    ort_node *one = net_node_of(n, "ai.onnx.ml", "TreeEnsembleRegressor", "x", "one");
    set_trees(n, one);
    net_int(n, one, "n_targets", 1);
    set_floats(n, one, "base_values", LIST(float, 0.25f));
    set_ints(n, one, "target_treeids", LIST(int64_t, 1, 0, 1, 0, 1));
    set_ints(n, one, "target_nodeids", LIST(int64_t, 4, 1, 2, 2, 3));
    set_ints(n, one, "target_ids", LIST(int64_t, 0, 0, 0, 0, 0));
    set_floats(n, one, "target_weights", LIST(float, 5, 1, 3, -2, 4));
    ort_node *many = net_node_of(n, "ai.onnx.ml", "TreeEnsembleClassifier", "x", "label many");
    set_trees(n, many);
    set_ints(n, many, "classlabels_int64s", LIST(int64_t, 7, 8, 9));
    set_ints(n, many, "class_treeids", LIST(int64_t, 0, 0, 0, 1, 1, 1));
    set_ints(n, many, "class_nodeids", LIST(int64_t, 1, 1, 2, 2, 3, 4));
    set_ints(n, many, "class_ids", LIST(int64_t, 0, 1, 2, 1, 2, 0));
    set_floats(n, many, "class_weights", LIST(float, 0.5f, 1, -2, 0.75f, 3, 1));
    ort_node *sets = net_node_of(n, "ai.onnx.ml", "TreeEnsemble", "x", "sets");
    net_int(n, sets, "n_targets", 4);
    set_ints(n, sets, "tree_roots", LIST(int64_t, 0));
    set_ints(n, sets, "nodes_featureids", LIST(int64_t, 0, 0, 0));
    set_tensor(n, sets, "nodes_modes", ORT_DTYPE_UINT8, LIST(uint8_t, 0, 6, 6));
    set_tensor(n, sets, "nodes_splits", ORT_DTYPE_FLOAT, LIST(float, 11, 0, 0));
    set_tensor(n, sets, "membership_values", ORT_DTYPE_FLOAT,
               LIST(float, 1.2f, 0.5f, NAN, 0.25f, -1, NAN));
    set_ints(n, sets, "nodes_trueleafs", LIST(int64_t, 0, 1, 1));
    set_ints(n, sets, "nodes_truenodeids", LIST(int64_t, 1, 0, 1));
    set_ints(n, sets, "nodes_falseleafs", LIST(int64_t, 1, 0, 1));
    set_ints(n, sets, "nodes_falsenodeids", LIST(int64_t, 2, 2, 3));
    set_ints(n, sets, "leaf_targetids", LIST(int64_t, 0, 1, 2, 3));
    set_tensor(n, sets, "leaf_weights", ORT_DTYPE_FLOAT, LIST(float, 1, 10, 1000, 100));
    net_output(n, "one");
    net_output(n, "many");
    net_output(n, "sets");
}

static void free_values(ort_value **y)
{
    for (int i = 0; i < OUTPUTS; i++) {
        ort_value_free(y[i]);
        y[i] = NULL;
    }
}

static ort_status run_file(bench *b, bool no_pack, ort_value **y)
{
    ort_session *session = NULL;
    ort_session_options options;
    ort_session_options_init(&options);
    options.no_pack = no_pack;
    ORT_TRY(ort_session_load(b->env, b->model, &options, &session, NULL));
    ort_status status = run_whole(session, &b->x, y, NULL, NULL);
    ort_session_free(session);
    return status;
}

static bool same(const bench *b, ort_value *const *y)
{
    for (int i = 0; i < OUTPUTS; i++)
        if (!y[i] || ort_value_digest(y[i]) != ort_value_digest(b->y[i]))
            return false;
    return true;
}

static bool bench_open(bench *b)
{
    net n;
    ort_env_options options;
    ort_env_options_init(&options);
    *b = (bench){.folder = "/tmp/ort-trees-XXXXXX"};
    options.log = listen;
    options.log_arg = b;
    options.log_level = ORT_LOG_WARNING;
    if (!mkdtemp(b->folder) || !net_init(&n, NULL))
        return false;
    snprintf(b->model, sizeof b->model, "%s/m.onnx", b->folder);
    snprintf(b->pack, sizeof b->pack, "%s.pack", b->model);
    build(&n);
    bool ok = ort_model_save_packed(n.env, n.model, b->model, NULL, NULL) == ORT_OK &&
              ort_env_new(&options, &b->env, NULL) == ORT_OK;
    net_free(&n);
    b->x = net_floats(2, DIMS(20, 3), -1, 0.25f);
    return ok && run_file(b, true, b->y) == ORT_OK;
}

static void bench_close(bench *b)
{
    unlink(b->model);
    unlink(b->pack);
    rmdir(b->folder);
    ort_value_free(b->x);
    free_values(b->y);
    ort_env_free(b->env);
}

/* ---- cases */

static bool mentions(const ort_pack *pack, const char *text)
{
    for (size_t i = 0; i + strlen(text) <= pack->graph_bytes; i++)
        if (!memcmp(pack->graph + i, text, strlen(text)))
            return true;
    return false;
}

static void used_where_they_lie(test_state *test)
{
    bench b;
    ort_pack pack;
    ort_value *y[OUTPUTS] = {0};
    int forests = 0;
    CHECK(bench_open(&b));
    CHECK(ort_pack_open(b.pack, &pack, NULL) == ORT_OK);
    for (size_t i = 0; i < pack.entry_count; i++)
        forests += !strcmp(pack.entries[i].kind, "forest");
    CHECK(forests == 3 && mentions(&pack, "classlabels_int64s") && mentions(&pack, "n_targets"));
    CHECK(!mentions(&pack, "BRANCH_LEQ"));
    ort_pack_release(&pack);
    CHECK(run_file(&b, false, y) == ORT_OK && b.ignored == 0 && same(&b, y));
    free_values(y);
    bench_close(&b);
}

static bool put_byte(FILE *file, uint64_t at, uint8_t byte)
{
    return fseek(file, (long)at, SEEK_SET) == 0 && fputc(byte, file) != EOF && fflush(file) == 0;
}

/* A digest guards every block: whatever byte is changed, a session is made of the model instead. */
static void every_byte_changed(test_state *test)
{
    static const uint8_t masks[] = {1, 0x80, 0xff, 0x10};
    bench b;
    ort_pack pack;
    int refused = 0;
    CHECK(bench_open(&b));
    CHECK(ort_pack_open(b.pack, &pack, NULL) == ORT_OK);
    FILE *file = fopen(b.pack, "r+b");
    CHECK(file);
    for (size_t i = 0; i < pack.entry_count; i++) {
        const ort_pack_entry *e = &pack.entries[i];
        for (uint64_t at = e->offset; at < e->offset + e->bytes && !strcmp(e->kind, "forest"); at++)
            for (size_t k = 0; k < sizeof masks; k++) {
                ort_value *y[OUTPUTS] = {0};
                uint8_t byte = pack.blob->bytes[at];
                b.ignored = 0;
                CHECK(put_byte(file, at, byte ^ masks[k]));
                CHECK(run_file(&b, false, y) == ORT_OK);
                CHECK(b.ignored == 1 && same(&b, y) && strstr(b.line, "damaged"));
                refused += b.ignored;
                free_values(y);
                CHECK(put_byte(file, at, byte));
            }
    }
    CHECK(refused > 1000);
    fclose(file);
    ort_pack_release(&pack);
    bench_close(&b);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, used_where_they_lie);
    RUN(test, every_byte_changed);
    return test->failures != 0;
}
