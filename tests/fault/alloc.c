/* alloc.c - the n-th allocation fails, for every n: loading, checking, reporting on, running and
 * freeing a model must then say ORT_ERROR_MEMORY, crash nowhere and leak nothing.
 *
 * usage: alloc [--from N] [--step N] [--case NAME] [--persist] DIR   (DIR holds the bundled models)
 *
 * The linker sends the library's allocations here (--wrap, see the Makefile). Each walk is done
 * with the n-th one failing alone, and with all from the n-th on failing (--persist: only that). A
 * walk may also succeed, when what could not be had was not needed, but then its outputs are right.
 * Live blocks are kept in a table: what is left of them after a walk is a leak. One thread, so that
 * n means the same each time.
 */
#include <errno.h>
#include <getopt.h>
#include <stdint.h>

#include "../unit/net.h"

#define TABLE_BITS 20
#define TABLE_SIZE (1u << TABLE_BITS)

/* ---- the allocator under test */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **block, size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);
void __real_free(void *block);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **block, size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
void __wrap_free(void *block);

static struct {
    bool on, persist;
    long count, fail_at; /* fail_at 0: none */
    long failed, live;
    void *block[TABLE_SIZE]; /* linear probing */
} heap;

static uint32_t slot_of(const void *block)
{
    return (uint32_t)(((uintptr_t)block >> 4) * 0x9e3779b97f4a7c15u >> (64 - TABLE_BITS));
}

static void remember(void *block)
{
    if (!heap.on || !block)
        return;
    uint32_t i = slot_of(block);
    while (heap.block[i])
        i = (i + 1) % TABLE_SIZE;
    heap.block[i] = block;
    heap.live++;
}

static void forget(const void *block)
{
    if (!block)
        return;
    uint32_t i = slot_of(block);
    while (heap.block[i] && heap.block[i] != block)
        i = (i + 1) % TABLE_SIZE;
    if (!heap.block[i])
        return;
    heap.block[i] = NULL;
    heap.live--;
    /* Those behind that are not found any more move up. */
    for (uint32_t j = (i + 1) % TABLE_SIZE; heap.block[j]; j = (j + 1) % TABLE_SIZE) {
        uint32_t home = slot_of(heap.block[j]);
        if ((j - home) % TABLE_SIZE >= (j - i) % TABLE_SIZE) {
            heap.block[i] = heap.block[j];
            heap.block[j] = NULL;
            i = j;
        }
    }
}

static bool refuse(void)
{
    if (!heap.on)
        return false;
    heap.count++;
    if (!heap.fail_at || heap.count < heap.fail_at || (!heap.persist && heap.count > heap.fail_at))
        return false;
    heap.failed++;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    void *block = refuse() ? NULL : __real_malloc(bytes);
    remember(block);
    return block;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    void *block = refuse() ? NULL : __real_calloc(count, bytes);
    remember(block);
    return block;
}

void *__wrap_realloc(void *block, size_t bytes)
{
    if (refuse())
        return NULL;
    forget(block);
    block = __real_realloc(block, bytes);
    remember(block);
    return block;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    void *block = refuse() ? NULL : __real_aligned_alloc(alignment, bytes);
    remember(block);
    return block;
}

int __wrap_posix_memalign(void **block, size_t alignment, size_t bytes)
{
    int status = refuse() ? ENOMEM : __real_posix_memalign(block, alignment, bytes);
    if (status == 0)
        remember(*block);
    return status;
}

char *__wrap_strdup(const char *text)
{
    char *block = refuse() ? NULL : __real_strdup(text);
    remember(block);
    return block;
}

char *__wrap_strndup(const char *text, size_t length)
{
    char *block = refuse() ? NULL : __real_strndup(text, length);
    remember(block);
    return block;
}

void __wrap_free(void *block)
{
    forget(block);
    __real_free(block);
}

/* ---- a walk through the library */

typedef struct walk_case {
    const char *name;
    unsigned char *bytes;
    size_t count;
    int64_t size; /* of the dims "batch", "h" and "w" */
    int steps;    /* of a recurrence of the states a and b; 0: it has none */
} walk_case;

#define VALUES_MAX 8

typedef struct walk {
    const char *stage;
    uint64_t digest;
    ort_env *env;
    ort_model *model;
    ort_findings *findings;
    ort_session *session;
    ort_binding *binding;
    ort_value *inputs[VALUES_MAX], *outputs[VALUES_MAX];
    char *text;
} walk;

static ort_status walk_model(walk *w, const walk_case *c, ort_error *err)
{
    static const char *const dims[] = {"batch", "h", "w"};
    ort_env_options options;
    ort_status status;
    ort_env_options_init(&options);
    options.threads = 1;
    w->stage = "environment";
    if ((status = ort_env_new(&options, &w->env, err)))
        return status;
    w->stage = "load";
    if ((status = ort_model_load_memory(w->env, c->bytes, c->count, NULL, &w->model, err)))
        return status;
    w->stage = "set a dimension";
    for (int i = 0; i < 3 && c->size; i++)
        if ((status = ort_model_set_dim(w->model, dims[i], c->size, err)) == ORT_ERROR_MEMORY)
            return status;
    w->stage = "check";
    if ((status = ort_model_check(w->model, &w->findings, err)))
        return status;
    for (int report = ORT_REPORT_SUMMARY; report <= ORT_REPORT_MEMORY; report++) {
        w->stage = "report";
        if ((status = ort_model_report(w->model, (ort_report)report, &w->text, err)))
            return status;
        ort_text_free(w->text);
        w->text = NULL;
    }
    w->stage = "draw";
    return ort_model_draw(w->model, true, &w->text, err);
}

/* Steps of a recurrence, beyond the first room of its states. */
static ort_status walk_states(walk *w, const walk_case *c, ort_error *err)
{
    ort_status status;
    w->stage = "states";
    if ((status = ort_binding_set_state(w->binding, "a", "a2", err)) ||
        (status = ort_binding_set_state(w->binding, "b", "b2", err)))
        return status;
    for (int i = 0; i < c->steps; i++)
        if ((status = ort_binding_run(w->binding, NULL, err)))
            return status;
    for (size_t i = 0; i < ort_session_output_count(w->session); i++)
        if (!ort_binding_output(w->binding, i))
            return ort_error_set(err, ORT_ERROR_MEMORY, "no memory for a plain tensor");
    return ORT_OK;
}

/* Inputs of a recurrence, caches of 5 rows: those of free sizes are made up smaller where memory
 * for trying sizes is missing. */
static ort_status make_inputs(walk *w, ort_error *err)
{
    for (size_t i = 0; i < ort_session_input_count(w->session); i++) {
        int64_t dims[4];
        int rank = ort_session_input_dims(w->session, i, dims, 4);
        for (int d = 0; d < rank; d++)
            dims[d] = dims[d] < 0 ? 5 : dims[d];
        ort_status status = ort_value_new_tensor(ORT_DTYPE_FLOAT, rank, dims, &w->inputs[i], err);
        if (status != ORT_OK)
            return status;
        for (int64_t e = 0; e < ort_value_count(w->inputs[i]); e++)
            ort_value_set_double(w->inputs[i], e, (double)(e * 7 % 11) / 4 - (double)i);
    }
    return ORT_OK;
}

static ort_status walk_session(walk *w, const walk_case *c, ort_error *err)
{
    ort_status status;
    w->stage = "session";
    if ((status = ort_session_new(w->env, w->model, NULL, &w->session, err)))
        return status;
    size_t outputs = ort_session_output_count(w->session);
    w->stage = "random inputs";
    if ((status = c->steps ? make_inputs(w, err)
                           : ort_session_random_inputs(w->session, 1, w->inputs,
                                                       ort_session_input_count(w->session), err)))
        return status;
    w->stage = "run";
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < outputs; i++) {
            ort_value_free(w->outputs[i]);
            w->outputs[i] = NULL;
        }
        if ((status = run_whole(w->session, w->inputs, w->outputs, NULL, err)))
            return status;
    }
    for (size_t i = 0; i < outputs; i++)
        w->digest = w->digest * 31 + ort_value_digest(w->outputs[i]);
    w->stage = "binding";
    if ((status = ort_binding_new(w->session, &w->binding, err)))
        return status;
    for (size_t i = 0; i < ort_session_input_count(w->session); i++)
        if ((status = ort_binding_set_input(w->binding, ort_session_input_name(w->session, i),
                                            w->inputs[i], err)))
            return status;
    if ((status = ort_binding_run(w->binding, NULL, err)) ||
        (c->steps && (status = walk_states(w, c, err))))
        return status;
    for (size_t i = 0; i < outputs; i++)
        w->digest = w->digest * 31 + ort_value_digest(ort_binding_output(w->binding, i));
    return ORT_OK;
}

static ort_status walk_all(const walk_case *c, walk *w, ort_error *err)
{
    memset(w, 0, sizeof *w);
    heap.count = heap.failed = 0;
    heap.on = true;
    ort_status status = walk_model(w, c, err);
    if (status == ORT_OK)
        status = walk_session(w, c, err);
    for (size_t i = 0; i < VALUES_MAX; i++) {
        ort_value_free(w->inputs[i]);
        ort_value_free(w->outputs[i]);
    }
    ort_text_free(w->text);
    ort_binding_free(w->binding);
    ort_session_free(w->session);
    ort_findings_free(w->findings);
    ort_model_free(w->model);
    ort_env_free(w->env);
    heap.on = false;
    return status;
}

/* ---- every n */

static void forget_all(void)
{
    memset(heap.block, 0, sizeof heap.block);
    heap.live = 0;
}

/* Whether the walk with allocation n failing went as it must. */
static bool walk_failing(const walk_case *c, long n, bool persist, uint64_t digest)
{
    ort_error err = {0};
    walk w;
    heap.fail_at = n;
    heap.persist = persist;
    ort_status status = walk_all(c, &w, &err);
    const char *how = persist ? "and all after it" : "alone";
    bool good = true;
    if (status != ORT_OK && status != ORT_ERROR_MEMORY) {
        printf("not ok %s: allocation %ld failing %s gives %s in %s: %s\n", c->name, n, how,
               ort_status_name(status), w.stage, err.message);
        good = false;
    } else if (status != ORT_OK && !err.message[0]) {
        printf("not ok %s: allocation %ld failing %s gives no message in %s\n", c->name, n, how,
               w.stage);
        good = false;
    } else if (status == ORT_OK && w.digest != digest) {
        printf("not ok %s: allocation %ld failing %s gives wrong outputs\n", c->name, n, how);
        good = false;
    }
    if (heap.live) {
        printf("not ok %s: allocation %ld failing %s in %s leaks %ld blocks\n", c->name, n, how,
               w.stage, heap.live);
        forget_all();
        good = false;
    }
    return good;
}

static void run_case(const walk_case *c, long from, long step, bool only_persist, long *passed,
                     long *failed)
{
    ort_error err = {0};
    walk w;
    heap.fail_at = 0;
    if (walk_all(c, &w, &err) || heap.live) {
        printf("not ok %s: without a failing allocation: %ld blocks leak; %s: %s\n", c->name,
               heap.live, w.stage, err.message);
        forget_all();
        ++*failed;
        return;
    }
    long count = heap.count;
    uint64_t digest = w.digest;
    for (long n = from; n <= count; n += step)
        for (int persist = only_persist; persist < 2; persist++) {
            fflush(stdout);
            if (walk_failing(c, n, persist, digest))
                ++*passed;
            else
                ++*failed;
        }
    printf("%s: %ld allocations\n", c->name, count);
}

/* ---- the cases */

static bool take_file(walk_case *c, const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.onnx", dir, c->name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        printf("not ok %s: %s: %s\n", c->name, path, strerror(errno));
        return false;
    }
    c->bytes = malloc((size_t)1 << 20);
    c->count = c->bytes ? fread(c->bytes, 1, (size_t)1 << 20, file) : 0;
    fclose(file);
    return c->count > 0;
}

static bool take_net(walk_case *c, net *n)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, &c->count);
    ort_error err = {0};
    bool good = stream && !ort_model_write(n->model, stream, &err);
    if (stream)
        fclose(stream);
    if (!good)
        printf("not ok %s: %s\n", c->name, err.message);
    c->bytes = (unsigned char *)text;
    net_free(n);
    return good;
}

/* An If in a Loop, with values captured across both. */
static bool make_control(walk_case *c)
{
    const bool yes = true;
    net n;
    if (!net_init(&n, NULL))
        return false;
    net_input(&n, "x", ORT_DTYPE_FLOAT, 1, (const int64_t[]){6});
    net_constant(&n, "trips", ORT_DTYPE_INT64, 0, NULL, (const int64_t[]){3});
    net_constant(&n, "go", ORT_DTYPE_BOOL, 0, NULL, &yes);
    net_constant(&n, "one", ORT_DTYPE_INT64, 0, NULL, (const int64_t[]){1});
    net_node(&n, "Neg", "x", "minus");
    ort_node *loop = net_node(&n, "Loop", "trips go x", "total all");
    net_body(&n, loop, "body");
    net_input(&n, "i", ORT_DTYPE_INT64, 0, NULL);
    net_input(&n, "cond", ORT_DTYPE_BOOL, 0, NULL);
    net_input(&n, "sum", ORT_DTYPE_FLOAT, 1, (const int64_t[]){6});
    net_node(&n, "Identity", "cond", "cond_out");
    net_node(&n, "Equal", "i one", "second");
    ort_node *choice = net_node(&n, "If", "second", "part");
    net_body(&n, choice, "then_branch");
    net_node(&n, "Mul", "minus minus", "square");
    net_output(&n, "square");
    net_end(&n);
    net_body(&n, choice, "else_branch");
    net_node(&n, "Sigmoid", "minus", "soft");
    net_output(&n, "soft");
    net_end(&n);
    net_node(&n, "Add", "sum part", "sum_out");
    net_output(&n, "cond_out");
    net_output(&n, "sum_out");
    net_output(&n, "part");
    net_end(&n);
    net_output(&n, "total");
    net_output(&n, "all");
    return take_net(c, &n);
}

/* Attention over caches that grow. */
static bool make_decoder(walk_case *c)
{
    net n;
    if (!net_init(&n, NULL))
        return false;
    n.model->opsets.data[0].version = 23;
    net_input(&n, "x", ORT_DTYPE_FLOAT, 3, (const int64_t[]){1, 3, 8});
    net_input(&n, "a", ORT_DTYPE_FLOAT, 4, (const int64_t[]){1, 2, -1, 4});
    net_input(&n, "b", ORT_DTYPE_FLOAT, 4, (const int64_t[]){1, 2, -1, 4});
    ort_node *node = net_node(&n, "Attention", "x x x - a b", "y a2 b2");
    net_int(&n, node, "q_num_heads", 2);
    net_int(&n, node, "kv_num_heads", 2);
    net_output(&n, "y");
    net_output(&n, "a2");
    net_output(&n, "b2");
    return take_net(c, &n);
}

int main(int argc, char **argv)
{
    static const struct option table[] = {{"from", 1, NULL, 'f'}, {"step", 1, NULL, 's'},
                                          {"case", 1, NULL, 'c'}, {"persist", 0, NULL, 'p'}, {0}};
    walk_case cases[] = {{.name = "control"}, {.name = "decoder", .steps = 24},
                         {.name = "digits", .size = 2}, {.name = "upscale", .size = 9}};
    long from = 1, step = 1, passed = 0, failed = 0;
    const char *only = NULL;
    bool persist = false;
    int option;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (option) {
        case 'f': from = atol(optarg); break;
        case 's': step = atol(optarg); break;
        case 'c': only = optarg; break;
        case 'p': persist = true; break;
        default: optind = argc;
        }
    }
    if (optind != argc - 1 || from < 1 || step < 1) {
        fprintf(stderr, "usage: alloc [--from N] [--step N] [--case NAME] [--persist] DIR\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        walk_case *c = &cases[i];
        if (only && strcmp(only, c->name))
            continue;
        if (i == 0 ? make_control(c) : i == 1 ? make_decoder(c) : take_file(c, argv[optind]))
            run_case(c, from, step, persist, &passed, &failed);
        else
            failed++;
        free(c->bytes);
    }
    printf("%ld passed, %ld failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
