/* test_shared_packs.c - a weight that several nodes read is packed once: in a session and in its
 * pack file. Nodes that pack it in other ways have packs of their own. Memory of a constant that a
 * pass made and one step packed serves the next block; a pool's threads pack what is large.
 */
#include <stdlib.h>
#include <unistd.h>

#include "io/pack.h"
#include "net.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

enum { WIDTH = 64 };

static const float *numbers(void)
{
    static float list[WIDTH * WIDTH];
    for (int i = 0; i < WIDTH * WIDTH; i++)
        list[i] = (float)((i * 37 + 11) % 101) / 500 - 0.1f;
    return list;
}

/* x -> MatMul w -> MatMul w -> Gemm of w transposed -> y */
static void build(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(3, WIDTH));
    net_constant(n, "w", ORT_DTYPE_FLOAT, 2, DIMS(WIDTH, WIDTH), numbers());
    net_constant(n, "c", ORT_DTYPE_FLOAT, 1, DIMS(WIDTH), numbers());
    net_node(n, "MatMul", "x w", "a");
    net_node(n, "MatMul", "a w", "b");
    ort_node *turned = net_node(n, "Gemm", "b w c", "y");
    net_int(n, turned, "transB", 1);
    net_output(n, "y");
}

typedef struct files {
    char folder[64], model[96], pack[112];
} files;

static void remove_files(const files *f)
{
    unlink(f->model);
    unlink(f->pack);
    rmdir(f->folder);
}

static bool save(files *f, net *n)
{
    *f = (files){.folder = "/tmp/ort-shared-XXXXXX"};
    if (!mkdtemp(f->folder))
        return false;
    snprintf(f->model, sizeof f->model, "%s/m.onnx", f->folder);
    snprintf(f->pack, sizeof f->pack, "%s.pack", f->model);
    return ort_model_save_packed(n->env, n->model, f->model, NULL, NULL) == ORT_OK;
}

/* How many places in the file the panels have, and how many steps have panels. */
static void count_panels(const ort_pack *pack, int *steps, int *places)
{
    uint64_t end = 0;
    *steps = *places = 0;
    for (size_t i = 0; i < pack->entry_count; i++) {
        const ort_pack_entry *e = &pack->entries[i];
        bool panels = !strcmp(e->kind, "panels");
        *steps += panels;
        *places += panels && e->offset >= end;
        end = e->offset + e->bytes > end ? e->offset + e->bytes : end;
    }
}

static void a_file_holds_a_shared_block_once(test_state *test)
{
    net n;
    files f;
    ort_pack pack = {0};
    int steps, places;
    CHECK(net_init(&n, NULL));
    build(&n);
    bool saved = save(&f, &n);
    net_free(&n);
    CHECK(saved && ort_pack_open(f.pack, &pack, NULL) == ORT_OK);
    count_panels(&pack, &steps, &places);
    bool whole = ort_pack_verify(&pack, NULL, NULL) == ORT_OK;
    ort_pack_release(&pack);
    remove_files(&f);
    CHECK(steps == 3 && places == 2 && whole);
}

static ort_status run(ort_env *env, const files *f, bool no_pack, uint64_t *digest, int64_t width)
{
    ort_session *session = NULL;
    ort_session_options options;
    ort_value *x = net_floats(2, DIMS(3, width), -1, 0.01f), *y = NULL;
    ort_session_options_init(&options);
    options.no_pack = no_pack;
    ort_status status = ort_session_load(env, f->model, &options, &session, NULL);
    if (status == ORT_OK)
        status = run_whole(session, &x, &y, NULL, NULL);
    *digest = y ? ort_value_digest(y) : 0;
    ort_session_free(session);
    ort_value_free(x);
    ort_value_free(y);
    return status;
}

static void it_serves_all_of_them(test_state *test)
{
    net n;
    files f;
    uint64_t with = 0, without = 1;
    CHECK(net_init(&n, NULL));
    build(&n);
    bool ok = save(&f, &n) && run(n.env, &f, false, &with, WIDTH) == ORT_OK &&
              run(n.env, &f, true, &without, WIDTH) == ORT_OK;
    net_free(&n);
    remove_files(&f);
    CHECK(ok && with == without);
}

/* ---- memory of scaled weights */

enum { WIDE = 192, LAYERS = 5 };

static const float *wide_numbers(int seed)
{
    static float list[WIDE * WIDE];
    for (int i = 0; i < WIDE * WIDE; i++)
        list[i] = (float)((i * 37 + seed * 11) % 101) / 1000 - 0.05f;
    return list;
}

/* A product and a scale of its columns, which goes into a copy of the weights. */
static void add_scaled(net *n, int layer, int64_t depth, int64_t width, const char *from,
                       const char *to)
{
    char w[8], s[8], product[8], inputs[24];
    snprintf(w, sizeof w, "w%d", layer);
    snprintf(s, sizeof s, "s%d", layer);
    snprintf(product, sizeof product, "p%d", layer);
    net_constant(n, w, ORT_DTYPE_FLOAT, 2, DIMS(depth, width), wide_numbers(layer));
    net_constant(n, s, ORT_DTYPE_FLOAT, 1, DIMS(width), wide_numbers(layer + 50));
    snprintf(inputs, sizeof inputs, "%s %s", from, w);
    net_node(n, "MatMul", inputs, product);
    snprintf(inputs, sizeof inputs, "%s %s", product, s);
    net_node(n, "Mul", inputs, to);
}

/* Each half as wide as the one before, and then as wide again: the first makes room for two. */
static void build_scaled(net *n)
{
    static const int64_t widths[LAYERS + 1] = {WIDE, WIDE, WIDE / 2, WIDE, WIDE / 2, WIDE};
    char from[8] = "x", to[8];
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(3, WIDE));
    for (int i = 0; i < LAYERS; i++) {
        snprintf(to, sizeof to, "y%d", i);
        add_scaled(n, i, widths[i], widths[i + 1], from, to);
        memcpy(from, to, sizeof from);
    }
    net_output(n, from);
}

/* What is turned once and for all is read by a step before the one that packs something else, and
 * by a step behind it, which packs it in another way. */
static void build_read_again(net *n)
{
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, DIMS(3, WIDE));
    net_constant(n, "w", ORT_DTYPE_FLOAT, 2, DIMS(WIDE, WIDE), wide_numbers(7));
    net_constant(n, "one", ORT_DTYPE_FLOAT, 2, DIMS(1, WIDE), wide_numbers(9));
    net_node(n, "Mul", "w one", "made"); /* computed ahead */
    net_node(n, "MatMul", "x made", "a");
    add_scaled(n, 1, WIDE, WIDE, "a", "b");
    ort_node *turned = net_node(n, "Gemm", "b made", "y");
    net_int(n, turned, "transB", 1);
    net_output(n, "y");
}

/* A session of the file with fresh memory for all (its pack is made so) and one without a pack. */
static bool same_as_packed(void (*build_net)(net *), size_t *bytes)
{
    net n;
    files f;
    uint64_t with = 0, without = 1;
    ort_session *session = NULL;
    ort_session_options options;
    ort_session_options_init(&options);
    options.no_pack = true;
    if (!net_init(&n, NULL))
        return false;
    build_net(&n);
    bool ok = save(&f, &n) && run(n.env, &f, false, &with, WIDE) == ORT_OK &&
              run(n.env, &f, true, &without, WIDE) == ORT_OK &&
              ort_session_load(n.env, f.model, &options, &session, NULL) == ORT_OK;
    *bytes = session ? session->prepared_bytes : 0;
    ort_session_free(session);
    net_free(&n);
    remove_files(&f);
    return ok && with == without;
}

static void scaled_weights_make_room(test_state *test)
{
    size_t bytes;
    CHECK(same_as_packed(build_scaled, &bytes));
    CHECK(bytes > 0 && bytes < 2 * WIDE * WIDE * sizeof(float)); /* of three */
}

static void what_is_read_again_stays(test_state *test)
{
    size_t bytes;
    CHECK(same_as_packed(build_read_again, &bytes));
}

/* ---- several threads */

static const float *many_numbers(void)
{
    enum { COUNT = 1 << 20 };
    static float list[COUNT];
    for (int i = 0; i < COUNT; i++)
        list[i] = (float)((i * 37 + i / 1009) % 211) / 4000 - 0.026f;
    return list;
}

typedef struct large_pack {
    const char *name, *op_type;
    int rank;
    int64_t x[4], w[4];
    int64_t turned, group;
} large_pack;

static const large_pack large_packs[] = {
    {"product", "MatMul", 2, {5, 800}, {800, 730}, 0, 0},
    {"turned product", "Gemm", 2, {5, 800}, {730, 800}, 1, 0},
    {"1x1", "Conv", 4, {1, 800, 7, 7}, {730, 800, 1, 1}, 0, 1},
    {"3x3", "Conv", 4, {1, 248, 3, 3}, {264, 248, 3, 3}, 0, 1},
    {"groups", "Conv", 4, {1, 400, 5, 5}, {328, 200, 3, 3}, 0, 2},
    {"tiles", "Conv", 4, {1, 136, 28, 28}, {152, 136, 3, 3}, 0, 1},
    {"line", "Conv", 4, {1, 264, 1, 300}, {280, 264, 1, 7}, 0, 1},
};

static uint64_t digest_with(const large_pack *p, const char *isa, int threads)
{
    net n;
    uint64_t digest = 0;
    ort_session *session = NULL;
    ort_value *x = net_floats(p->rank, p->x, -1, 0.01f), *y = NULL;
    if (!net_on(&n, isa, threads))
        return 0;
    net_input(&n, "x", ORT_DTYPE_FLOAT, p->rank, p->x);
    net_constant(&n, "w", ORT_DTYPE_FLOAT, p->rank, p->w, many_numbers());
    ort_node *node = net_node(&n, p->op_type, "x w", "y");
    if (p->turned)
        net_int(&n, node, "transB", 1);
    if (p->group)
        net_int(&n, node, "group", p->group);
    net_output(&n, "y");
    if (!ort_session_new(n.env, n.model, NULL, &session, NULL) &&
        !run_whole(session, &x, &y, NULL, NULL))
        digest = ort_value_digest(y);
    ort_session_free(session);
    ort_value_free(x);
    ort_value_free(y);
    net_free(&n);
    return digest;
}

static void threads_pack_the_same(test_state *test)
{
    static const char *const tiers[] = {"scalar", "avx2", NULL};
    for (size_t t = 0; t < sizeof tiers / sizeof *tiers; t++)
        for (size_t i = 0; i < sizeof large_packs / sizeof *large_packs; i++) {
            if (tiers[t] && !ort_kernels_get(tiers[t]))
                continue;
            uint64_t one = digest_with(&large_packs[i], tiers[t], 1);
            bool same = one && digest_with(&large_packs[i], tiers[t], 3) == one;
            if (!same)
                printf("%s on %s\n", large_packs[i].name, tiers[t] ? tiers[t] : "the best tier");
            CHECK(same);
        }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, a_file_holds_a_shared_block_once);
    RUN(&test, it_serves_all_of_them);
    RUN(&test, scaled_weights_make_room);
    RUN(&test, what_is_read_again_stays);
    RUN(&test, threads_pack_the_same);
    return test.failures != 0;
}
