/* run_cost.c - what a run through the ABI costs above ort_session_run: a gate on it.
 *
 *     run_cost LIBRARY MODELS [--rounds N] [--delay NS]
 *
 * The same model of three inputs (three.onnx), the same threads, in one process: this program has
 * the library linked in, and opens the drop-in beside it. Rounds of many runs alternate, beginning
 * with the one and with the other side, and are measured in processor time. The cost is the median
 * of the rounds' differences, with the interval in which the median of 95 of 100 such series lies.
 * The exit status is 1 where the cost is above the limit. --delay makes each run through the ABI so
 * much longer: with 600, the gate says no.
 */
#include "differ.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 2000, ROUNDS = 101, MOST_ROUNDS = 999, INPUTS = 3 };

static const double limit_us = 0.5;
static const char *const input_names[INPUTS] = {"a", "b", "c"}, *const output_names[] = {"y"};
static const int64_t dims[] = {1, 4};
static float data[INPUTS][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}, {100, 200, 300, 400}};

static double clock_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Of the process, so that others on the machine don't count. */
static double now_us(void) { return clock_us(CLOCK_PROCESS_CPUTIME_ID); }

static void wait_ns(long ns)
{
    double end = clock_us(CLOCK_MONOTONIC) + (double)ns * 1e-3;
    while (ns && clock_us(CLOCK_MONOTONIC) < end)
        ;
}

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "run_cost: %s failed\n", what);
    exit(2);
}

static bool is_right(const float *y)
{
    return y[0] == 111 && y[1] == 222 && y[2] == 333 && y[3] == 444;
}

/* --------------------------------------------------------------------------- the library itself */

typedef struct direct {
    ort_env *env;
    ort_session *session;
    ort_value *inputs[INPUTS];
} direct;

static void open_direct(direct *d, const char *model)
{
    ort_env_options alone = ORT_ENV_OPTIONS_INIT;
    ort_session_options options;
    ort_session_options_init(&options);
    alone.threads = options.threads = 1;
    check(ort_env_new(&alone, &d->env, NULL) == ORT_OK, "ort_env_new");
    check(ort_session_load(d->env, model, &options, &d->session, NULL) == ORT_OK,
          "ort_session_load");
    for (int i = 0; i < INPUTS; i++)
        check(ort_value_new_borrowed(ORT_DTYPE_FLOAT, 2, dims, data[i], sizeof data[i],
                                     &d->inputs[i], NULL) == ORT_OK,
              "ort_value_new_borrowed");
}

static void run_direct(const direct *d)
{
    ort_error err;
    ort_value *y = NULL;
    check(ort_session_run(d->session, input_names, (ort_value *const *)d->inputs, INPUTS,
                          output_names, &y, 1, NULL, &err) == ORT_OK,
          "ort_session_run");
    check(is_right(ort_value_data(y)), "the result of ort_session_run");
    ort_value_free(y);
}

static void close_direct(direct *d)
{
    for (int i = 0; i < INPUTS; i++)
        ort_value_free(d->inputs[i]);
    ort_session_free(d->session);
    ort_env_free(d->env);
}

/* ------------------------------------------------------------------------------ through the ABI */

typedef struct through {
    const api *api;
    OrtEnv *env;
    OrtSession *session;
    OrtValue *inputs[INPUTS];
} through;

static void fine(const api *a, OrtStatus *status, const char *what)
{
    if (status != NULL)
        fprintf(stderr, "%s\n", a->GetErrorMessage(status));
    check(status == NULL, what);
}

static const api *load(const char *path)
{
    struct base {
        const api *(*get_api)(uint32_t);
    };
    union {
        void *object;
        const struct base *(*function)(void);
    } entry;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    check(library, path);
    entry.object = dlsym(library, "OrtGetApiBase");
    return entry.function()->get_api(ABI_VERSION);
}

static void open_through(through *t, const char *library, const char *model)
{
    OrtSessionOptions *options = NULL;
    OrtMemoryInfo *memory = NULL;
    const api *a = t->api = load(library);
    fine(a, a->CreateEnv(ABI_FATAL, "cost", &t->env), "CreateEnv");
    fine(a, a->CreateSessionOptions(&options), "CreateSessionOptions");
    fine(a, a->SetIntraOpNumThreads(options, 1), "SetIntraOpNumThreads");
    fine(a, a->CreateSession(t->env, model, options, &t->session), "CreateSession");
    fine(a, a->CreateCpuMemoryInfo(1, 0, &memory), "CreateCpuMemoryInfo");
    for (int i = 0; i < INPUTS; i++)
        fine(a, a->CreateTensorWithDataAsOrtValue(memory, data[i], sizeof data[i], dims, 2, 1,
                                                  &t->inputs[i]),
             "CreateTensorWithDataAsOrtValue");
    a->ReleaseMemoryInfo(memory);
    a->ReleaseSessionOptions(options);
}

static void run_through(const through *t, long delay)
{
    OrtValue *y = NULL;
    void *result;
    fine(t->api,
         t->api->Run(t->session, NULL, input_names, (const OrtValue *const *)t->inputs, INPUTS,
                     output_names, 1, &y),
         "Run");
    fine(t->api, t->api->GetTensorMutableData(y, &result), "GetTensorMutableData");
    check(is_right(result), "the result of Run");
    t->api->ReleaseValue(y);
    wait_ns(delay);
}

static void close_through(through *t)
{
    for (int i = 0; i < INPUTS; i++)
        t->api->ReleaseValue(t->inputs[i]);
    t->api->ReleaseSession(t->session);
    t->api->ReleaseEnv(t->env);
}

/* ----------------------------------------------------------------------------------- the rounds */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_direct(const direct *d)
{
    double begin = now_us();
    for (int i = 0; i < RUNS; i++)
        run_direct(d);
    return (now_us() - begin) / RUNS;
}

static double time_through(const through *t, long delay)
{
    double begin = now_us();
    for (int i = 0; i < RUNS; i++)
        run_through(t, delay);
    return (now_us() - begin) / RUNS;
}

static int measure(const direct *d, const through *t, int rounds, long delay)
{
    double of_direct[MOST_ROUNDS], of_through[MOST_ROUNDS], above[MOST_ROUNDS];
    time_direct(d); /* both sides warm */
    time_through(t, delay);
    for (int i = 0; i < rounds; i++) {
        if (i % 2)
            of_direct[i] = time_direct(d);
        of_through[i] = time_through(t, delay);
        if (i % 2 == 0)
            of_direct[i] = time_direct(d);
        above[i] = of_through[i] - of_direct[i];
    }
    qsort(of_direct, (size_t)rounds, sizeof *of_direct, by_size);
    qsort(of_through, (size_t)rounds, sizeof *of_through, by_size);
    qsort(above, (size_t)rounds, sizeof *above, by_size);
    int middle = rounds / 2, aside = (int)ceil(0.98 * sqrt(rounds));
    int last = middle + aside < rounds ? middle + aside : rounds - 1;
    double cost = above[middle], high = above[last];
    printf("a run of 3 inputs, %d rounds of %d: ort_session_run %.3f us, through the ABI %.3f us\n",
           rounds, RUNS, of_direct[middle], of_through[middle]);
    printf("cost of the ABI %.3f us (%.3f to %.3f), at most %.1f\n", cost,
           above[middle > aside ? middle - aside : 0], high, limit_us);
    printf("%d passed, %d failed, 0 skipped\n", cost <= limit_us, cost > limit_us);
    return cost > limit_us;
}

static long number(int argc, char **argv, const char *option, long otherwise)
{
    for (int i = 3; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], option))
            return strtol(argv[i + 1], NULL, 10);
    return otherwise;
}

int main(int argc, char **argv)
{
    char model[4096];
    direct d;
    through t;
    if (argc < 3 || argc % 2 == 0) {
        fprintf(stderr, "usage: run_cost LIBRARY MODELS [--rounds N] [--delay NS]\n");
        return 2;
    }
    long rounds = number(argc, argv, "--rounds", ROUNDS), delay = number(argc, argv, "--delay", 0);
    if (rounds < 1 || rounds > MOST_ROUNDS || delay < 0) {
        fprintf(stderr, "run_cost: --rounds is 1 to %d, --delay at least 0\n", MOST_ROUNDS);
        return 2;
    }
    snprintf(model, sizeof model, "%s/three.onnx", argv[2]);
    open_direct(&d, model);
    open_through(&t, argv[1], model);
    int status = measure(&d, &t, (int)rounds, delay);
    close_through(&t);
    close_direct(&d);
    return status;
}
