/* test_plan_memory.c - how much memory plans take for values. */
#include <string.h>
#include <sys/mman.h>

#include "exec/frame.h"
#include "exec/plan.h"
#include "exec/session.h"
#include "net.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* Memory of values that don't live together is shared. */
static void arena_is_shared(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_plan *plan = NULL;
    char in[16] = "x", out[16];
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(64, 64));
    for (int i = 0; i < 10; i++) {
        snprintf(out, sizeof out, "v%d", i);
        net_node(&n, "Transpose", in, out);
        memcpy(in, out, sizeof in);
    }
    net_output(&n, in);
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = 0; /* transposes in a row would become one */
    ort_session *session = net_session(&n, &options, &err);
    ort_value *x = net_floats(2, DIMS(64, 64), 0, 1);
    CHECK(ort_plan_get(session->program, &x, NULL, &plan, &err) == ORT_OK);
    CHECK(plan->arena_bytes == 2 * 64 * 64 * sizeof(float) && plan->plain);
    CHECK(plan->peak_bytes == plan->arena_bytes);
    ort_plan_drop(plan);
    ort_value_free(x);
    ort_session_free(session);
    net_free(&n);
}

/* What only a watcher reads is made as soon as it can be, wherever its node stands: values that
 * are watched don't all live to the end. */
static void watched_die_early(test_state *test)
{
    enum { LINKS = 10 };
    net n;
    ort_error err = {0};
    ort_plan *plan = NULL;
    char in[16] = "x", out[16], shown[LINKS][16];
    const char *watched[LINKS + 1] = {NULL};
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(64, 64));
    for (int i = 0; i < LINKS; i++) {
        snprintf(out, sizeof out, "v%d", i);
        net_node(&n, "Transpose", in, out);
        memcpy(in, out, sizeof in);
    }
    net_output(&n, in);
    for (int i = 0; i < LINKS - 1; i++) {
        snprintf(out, sizeof out, "v%d", i);
        snprintf(shown[i], sizeof shown[i], "w%d", i);
        net_node(&n, "Neg", out, shown[i]);
        watched[i] = shown[i];
    }
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = 0;
    options.watched = watched;
    ort_session *session = net_session(&n, &options, &err);
    ort_value *x = net_floats(2, DIMS(64, 64), 0, 1);
    CHECK(ort_plan_get(session->program, &x, NULL, &plan, &err) == ORT_OK);
    CHECK(plan->step_count == 2 * LINKS - 1);
    CHECK(plan->peak_bytes <= 3 * 64 * 64 * sizeof(float));
    ort_plan_drop(plan);
    ort_value_free(x);
    ort_session_free(session);
    net_free(&n);
}

/* What draws random numbers keeps its order, though nobody but the watcher reads it. */
static void draws_keep_their_order(test_state *test)
{
    net n;
    ort_error err = {0};
    ort_plan *plan = NULL;
    const char *const watched[] = {"late", "shown", NULL};
    int random = -1, shown = -1;
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(8, 8));
    net_node(&n, "Transpose", "x", "a");
    net_node(&n, "Transpose", "a", "y");
    net_output(&n, "y");
    net_node(&n, "RandomUniformLike", "a", "late");
    net_node(&n, "Neg", "a", "shown");
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = 0;
    options.watched = watched;
    ort_session *session = net_session(&n, &options, &err);
    ort_value *x = net_floats(2, DIMS(8, 8), 0, 1);
    CHECK(ort_plan_get(session->program, &x, NULL, &plan, &err) == ORT_OK);
    CHECK(plan->step_count == 4);
    for (int i = 0; i < plan->step_count; i++) {
        const char *type = plan->steps[i].step->node->op_type;
        random = !strcmp(type, "RandomUniformLike") ? i : random;
        shown = !strcmp(type, "Neg") ? i : shown;
    }
    CHECK(shown == 2 && random == 3); /* the nodes stand the other way round */
    ort_plan_drop(plan);
    ort_value_free(x);
    ort_session_free(session);
    net_free(&n);
}

static size_t pages_here(const char *memory, size_t bytes)
{
    static unsigned char here[1024];
    const uintptr_t page = 4096, first = ((uintptr_t)memory + page - 1) / page * page;
    size_t pages = ((uintptr_t)memory + bytes - first) / page, count = 0;
    if (pages > sizeof here || mincore((void *)first, pages * page, here))
        return SIZE_MAX;
    for (size_t i = 0; i < pages; i++)
        count += here[i] & 1;
    return count;
}

/* A session that never runs takes no memory for runs; what is reserved is the first run's. */
static void memory_comes_with_the_first_run(test_state *test)
{
    net n;
    ort_error err = {0};
    CHECK(net_init(&n, NULL));
    net_input(&n, "x", ORT_DTYPE_FLOAT, 2, DIMS(512, 512));
    net_node(&n, "Transpose", "x", "a");
    net_node(&n, "Transpose", "a", "y");
    net_output(&n, "y");
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = 0;
    ort_session *session = net_session(&n, &options, &err);
    CHECK(session && session->idle_count == 1);
    const ort_frame *frame = session->idle[0]->frames.first;
    const size_t bytes = 512 * 512 * sizeof(float);
    CHECK(frame && frame->ahead && frame->plan->arena_bytes >= bytes);
    CHECK(pages_here(frame->arena, bytes) <= 1); /* the allocator's words stand in one */
    ort_value *x = net_floats(2, DIMS(512, 512), 0, 1), *y = NULL;
    const char *in = "x", *out = "y";
    CHECK(ort_session_run(session, &in, &x, 1, &out, &y, 1, NULL, &err) == ORT_OK);
    CHECK(session->idle_count == 1 && session->idle[0]->frames.first == frame && !frame->ahead);
    CHECK(pages_here(frame->arena, bytes) == bytes / 4096 ||
          pages_here(frame->arena, bytes) == bytes / 4096 - 1); /* where it begins within one */
    ort_value_free(y);
    ort_value_free(x);
    ort_session_free(session);
    net_free(&n);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, arena_is_shared);
    RUN(test, watched_die_early);
    RUN(test, draws_keep_their_order);
    RUN(test, memory_comes_with_the_first_run);
    return test->failures != 0;
}
