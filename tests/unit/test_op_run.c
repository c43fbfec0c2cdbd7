/* test_op_run.c - ort_op_run on every operator: with inputs that don't fit it (numbers, types and
 * shapes of them drawn at random, outputs too many or too few), and with such as its row allows, of
 * right and of wrong shapes, so that kernels are reached. It answers with a status; it never ends
 * its caller. Each operator runs in a process of its own, so that one that falls is named.
 *
 *     test_op_run [ROUNDS [SEED [OPERATOR]]]
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "draws.h"
#include "exec/env.h"
#include "test.h"

enum { DRAWS = 120, FITTING = 120, SECONDS = 60 };

static struct {
    long fitting, done; /* calls that the rows allow, and those that gave results */
    long operators, reached;
} *tally; /* shared with the children */

static long rounds = 1;
static uint64_t seed;
static const char *only; /* this operator, or NULL */

static ort_value *make_tensor(ort_dtype dtype)
{
    static const int ranks[] = {0, 1, 1, 2, 3, 4, 5};
    int64_t dims[8];
    int rank = ranks[draw(7)];
    for (int d = 0; d < rank; d++)
        dims[d] = draw(4) ? 1 + draw(3) : draw(5);
    return filled(dtype, rank, dims, 0, 5);
}

static ort_value *make_value(ort_dtype usual)
{
    static const ort_dtype types[] = {ORT_DTYPE_FLOAT, ORT_DTYPE_INT64, ORT_DTYPE_STRING,
                                      ORT_DTYPE_BOOL, ORT_DTYPE_UINT8, ORT_DTYPE_DOUBLE,
                                      ORT_DTYPE_FLOAT16, ORT_DTYPE_INT32, ORT_DTYPE_COMPLEX64,
                                      ORT_DTYPE_INT4};
    unsigned kind = draw(24);
    ort_value *v = NULL, *item = NULL;
    if (kind == 0)
        return NULL; /* absent */
    if (kind > 2)
        return make_tensor(kind < 10 ? types[draw(10)] : usual);
    item = make_tensor(usual);
    if (kind == 1 && !ort_value_new_sequence(&v, NULL) && draw(3) && item)
        (void)!ort_value_append(v, item, NULL);
    if (kind == 2)
        (void)!ort_value_new_map(item, item, &v, NULL);
    ort_value_free(item);
    return v;
}

static void run_one(ort_env *env, const ort_op *op)
{
    ort_value *in[MOST_INPUTS] = {NULL}, *out[MOST_OUTPUTS] = {NULL};
    ort_dtype usual = draw(2) ? ORT_DTYPE_FLOAT : (ort_dtype)(1 + draw(28));
    size_t inputs = draw(MOST_INPUTS + 1), outputs = draw(MOST_OUTPUTS + 1);
    ort_error err = ORT_ERROR_INIT;
    const int64_t numbers[] = {(int64_t)draw(4) - 1, 1};
    const ort_attribute_spec attributes[] = {
        {.name = "axis", .kind = 'i', .i = (int64_t)draw(7) - 3},
        {.name = draw(2) ? "axes" : "perm", .kind = 'I', .ints = numbers, .count = draw(3)},
    };
    for (size_t i = 0; i < inputs; i++)
        in[i] = make_value(usual);
    ort_status status = ort_op_run(env, op->domain, op->name, op->since, attributes,
                                   draw(4) ? 0 : 1 + draw(2), in, inputs, out, outputs, &err);
    if (status != ORT_OK && !*err.message)
        abort(); /* refused without a word */
    for (size_t i = 0; i < inputs; i++)
        ort_value_free(in[i]);
    for (size_t i = 0; i < outputs; i++)
        ort_value_free(out[i]);
}

/* A call that the row allows. */
static bool run_fitting(ort_env *env, const ort_op *op, const ort_schema *schema)
{
    ort_value *in[MOST_INPUTS] = {NULL}, *out[MOST_OUTPUTS] = {NULL};
    ort_error err = ORT_ERROR_INIT;
    fitting f;
    begin_fitting(&f, op, schema);
    size_t inputs = fitting_inputs(&f, in);
    size_t outputs = count_between(schema->min_outputs, schema->max_outputs, MOST_OUTPUTS);
    ort_status status = ort_op_run(env, op->domain, op->name, op->since, f.attributes,
                                   f.attribute_count, in, inputs, out, outputs, &err);
    if (status != ORT_OK && !*err.message)
        abort();
    for (size_t i = 0; i < inputs; i++)
        ort_value_free(in[i]);
    for (size_t i = 0; i < outputs; i++) {
        (void)ort_value_digest(out[i]); /* reads all of it */
        ort_value_free(out[i]);
    }
    return status == ORT_OK;
}

static void try_operator(ort_env *env, const ort_op *op)
{
    ort_schema schema;
    long done = 0;
    draw_state = 88172645463325252u + (uint64_t)op->since + seed;
    for (long k = 0; k < DRAWS * rounds; k++)
        run_one(env, op);
    if (ort_schema_parse(op, &schema, NULL))
        abort();
    for (long k = 0; k < FITTING * rounds; k++)
        done += run_fitting(env, op, &schema);
    tally->fitting += FITTING * rounds;
    tally->done += done;
    tally->operators++;
    tally->reached += done > 0;
    if (!done && getenv("ORT_TEST_VERBOSE"))
        printf("# never ran: %s.%s-%d\n", op->domain, op->name, op->since), fflush(stdout);
}

/* In a process of its own: 0 when all draws ended with a status. */
static int try_operators(const ort_op *const *ops, size_t count)
{
    fflush(stdout);
    pid_t child = fork();
    int status = -1;
    if (child == 0) {
        ort_env_options options = ORT_ENV_OPTIONS_INIT;
        ort_env *env = NULL;
        options.threads = 1;
        options.max_memory_bytes = (size_t)1 << 30;
        alarm((unsigned)(SECONDS * rounds));
        if (ort_env_new(&options, &env, NULL))
            _exit(1);
        for (size_t i = 0; i < count; i++)
            try_operator(env, ops[i]);
        ort_env_free(env);
        _exit(0);
    }
    return child < 0 || waitpid(child, &status, 0) != child ? -1 : status;
}

/* Many at once; only where one falls is it looked for. */
static void survives(test_state *test)
{
    enum { AT_ONCE = 64 };
    const ort_op *ops[AT_ONCE];
    ort_registry *registry = NULL;
    CHECK(!ort_registry_new(&registry, NULL));
    size_t count = ort_registry_count(registry), used = 0, fallen = 0;
    for (size_t i = 0; i < count; i++) {
        ops[used] = ort_registry_at(registry, i);
        used += !only || !strcmp(only, ops[used]->name);
        if (used < AT_ONCE && i + 1 < count)
            continue;
        int all = try_operators(ops, used);
        for (size_t k = 0; all && k < used; k++) {
            int status = try_operators(&ops[k], 1);
            if (status == 0)
                continue;
            printf("# %s.%s-%d: %s %d\n", ops[k]->domain, ops[k]->name, ops[k]->since,
                   WIFSIGNALED(status) ? "signal" : "exit",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            fallen++;
        }
        used = 0;
    }
    ort_registry_free(registry);
    printf("# %ld of %ld calls that the rows allow gave results; %ld of %ld operators did\n",
           tally->done, tally->fitting, tally->reached, tally->operators);
    CHECK(count > 300 && fallen == 0);
    CHECK(only || tally->done * 3 > tally->fitting); /* or the draws reach too few kernels */
}

int main(int argc, char **argv)
{
    test_state test = {.failures = 0};
    rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    only = argc > 3 ? argv[3] : NULL;
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rounds < 1 || tally == MAP_FAILED)
        return 2;
    RUN(&test, survives);
    return test.failures != 0;
}
