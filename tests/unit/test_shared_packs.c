/* test_shared_packs.c - a weight that several nodes read is packed once: in a session and in its
 * pack file. Nodes that pack it in other ways have packs of their own. */
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

static ort_status run(ort_env *env, const files *f, bool no_pack, uint64_t *digest)
{
    ort_session *session = NULL;
    ort_session_options options;
    ort_value *x = net_floats(2, DIMS(3, WIDTH), -1, 0.01f), *y = NULL;
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
    bool ok = save(&f, &n) && run(n.env, &f, false, &with) == ORT_OK &&
              run(n.env, &f, true, &without) == ORT_OK;
    net_free(&n);
    remove_files(&f);
    CHECK(ok && with == without);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, a_file_holds_a_shared_block_once);
    RUN(&test, it_serves_all_of_them);
    return test.failures != 0;
}
