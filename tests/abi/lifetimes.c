/* lifetimes.c - what outlives what: environments made and released a thousand times, one session in
 * eight threads, objects released in any order, the library unloaded and loaded again.
 *
 *     lifetimes LIBRARY MODELS
 *
 * Run it under valgrind, or with sanitizers, for what a plain run doesn't show.
 */
#include "differ.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CYCLES = 1000, THREADS = 8, RUNS = 200, LOADS = 5 };

static const char *folder;
static int passed, failed;

static void check(bool ok, const char *what)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        printf("FAIL %s\n", what);
}

static bool fine(const api *a, OrtStatus *status)
{
    bool good = status == NULL;
    if (!good)
        printf("code %d: %s\n", a->GetErrorCode(status), a->GetErrorMessage(status));
    a->ReleaseStatus(status);
    return good;
}

static void *load(const char *path, const api **loaded)
{
    struct base {
        const api *(*get_api)(uint32_t);
    };
    union {
        void *object;
        const struct base *(*function)(void);
    } entry;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        exit(1);
    }
    entry.object = dlsym(library, "OrtGetApiBase");
    *loaded = entry.function()->get_api(ABI_VERSION);
    return library;
}

static OrtSession *open_add(const api *a, OrtEnv *env, int threads)
{
    char path[4096];
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    snprintf(path, sizeof path, "%s/add.onnx", folder);
    bool ok = fine(a, a->CreateSessionOptions(&options)) &&
              fine(a, a->SetIntraOpNumThreads(options, threads)) &&
              fine(a, a->CreateSession(env, path, options, &session));
    a->ReleaseSessionOptions(options);
    return ok ? session : NULL;
}

/* x + {10, 20, 30} with x = {n, n, n}, in a value that is kept */
static bool run_once(const api *a, OrtSession *session, float n, OrtValue **kept)
{
    const char *in = "x", *out = "y";
    int64_t dims[] = {1, 3};
    float data[] = {n, n, n}, *result = NULL;
    OrtMemoryInfo *memory = NULL;
    OrtValue *x = NULL, *y = NULL;
    bool ok = fine(a, a->CreateCpuMemoryInfo(1, 0, &memory)) &&
              fine(a, a->CreateTensorWithDataAsOrtValue(memory, data, sizeof data, dims, 2, 1, &x));
    const OrtValue *feed = x;
    ok = ok && fine(a, a->Run(session, NULL, &in, &feed, 1, &out, 1, &y)) &&
         fine(a, a->GetTensorMutableData(y, (void **)&result)) && result[0] == n + 10 &&
         result[2] == n + 30;
    a->ReleaseMemoryInfo(memory);
    a->ReleaseValue(x);
    if (kept)
        *kept = y;
    else
        a->ReleaseValue(y);
    return ok;
}

static void cycle_environments(const api *a)
{
    bool ok = true;
    for (int i = 0; ok && i < CYCLES; i++) {
        OrtEnv *env = NULL;
        ok = fine(a, a->CreateEnv(ABI_FATAL, "cycle", &env));
        if (ok && i % 50 == 0) {
            OrtSession *session = open_add(a, env, 1);
            ok = session && run_once(a, session, (float)i, NULL);
            a->ReleaseSession(session);
        }
        a->ReleaseEnv(env);
    }
    check(ok, "a thousand environments");
}

typedef struct worker {
    const api *api;
    OrtSession *session;
    float first;
    bool ok;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    w->ok = true;
    for (int i = 0; w->ok && i < RUNS; i++)
        w->ok = run_once(w->api, w->session, w->first + (float)i, NULL);
    return NULL;
}

static void share_session(const api *a, int threads)
{
    OrtEnv *env = NULL;
    bool ok = fine(a, a->CreateEnv(ABI_FATAL, "shared", &env));
    OrtSession *session = ok ? open_add(a, env, threads) : NULL;
    pthread_t ids[THREADS];
    worker workers[THREADS];
    for (int i = 0; session && i < THREADS; i++) {
        workers[i] = (worker){a, session, (float)(1000 * i), false};
        pthread_create(&ids[i], NULL, work, &workers[i]);
    }
    for (int i = 0; session && i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        ok = ok && workers[i].ok;
    }
    check(ok && session, "eight threads on one session");
    a->ReleaseSession(session);
    a->ReleaseEnv(env);
}

/* Clients' destructors come in any order: the session outlives its environment, a value both. */
static void release_in_any_order(const api *a)
{
    OrtEnv *env = NULL;
    OrtValue *kept = NULL;
    float *result = NULL;
    bool ok = fine(a, a->CreateEnv(ABI_FATAL, "order", &env));
    OrtSession *session = ok ? open_add(a, env, 1) : NULL;
    a->ReleaseEnv(env);
    ok = session && run_once(a, session, 5, &kept);
    a->ReleaseSession(session);
    ok = ok && fine(a, a->GetTensorMutableData(kept, (void **)&result)) && result[1] == 25;
    a->ReleaseValue(kept);
    a->ReleaseSession(NULL);
    a->ReleaseValue(NULL);
    a->ReleaseEnv(NULL);
    check(ok, "released in another order");
}

typedef struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t done;
    int left;
    bool ok;
} waiting;

static const api *async_api;

static void finished(void *user_data, OrtValue **outputs, size_t count, OrtStatus *status)
{
    waiting *w = user_data;
    pthread_mutex_lock(&w->lock);
    w->ok &= status == NULL && count == 1 && outputs[0];
    async_api->ReleaseStatus(status);
    w->left--;
    pthread_cond_signal(&w->done);
    pthread_mutex_unlock(&w->lock);
}

static void run_in_background(const api *a)
{
    static const char *in = "x", *out = "y";
    static float data[] = {1, 2, 3};
    int64_t dims[] = {1, 3};
    waiting w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, THREADS, true};
    OrtEnv *env = NULL;
    OrtMemoryInfo *memory = NULL;
    OrtValue *x = NULL, *outputs[THREADS] = {0};
    async_api = a;
    bool ok = fine(a, a->CreateEnv(ABI_FATAL, "async", &env)) &&
              fine(a, a->CreateCpuMemoryInfo(1, 0, &memory)) &&
              fine(a, a->CreateTensorWithDataAsOrtValue(memory, data, sizeof data, dims, 2, 1, &x));
    OrtSession *session = ok ? open_add(a, env, 2) : NULL;
    const OrtValue *feed = x;
    for (int i = 0; session && i < THREADS; i++)
        if (!fine(a, a->RunAsync(session, NULL, &in, &feed, 1, &out, 1, &outputs[i], finished, &w)))
            ok = false;
    pthread_mutex_lock(&w.lock);
    while (ok && w.left)
        pthread_cond_wait(&w.done, &w.lock);
    pthread_mutex_unlock(&w.lock);
    check(ok && session && w.ok, "runs in the background");
    for (int i = 0; i < THREADS; i++)
        a->ReleaseValue(outputs[i]);
    a->ReleaseValue(x);
    a->ReleaseMemoryInfo(memory);
    a->ReleaseSession(session);
    a->ReleaseEnv(env);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: lifetimes LIBRARY MODELS\n");
        return 2;
    }
    folder = argv[2];
    for (int i = 0; i < LOADS; i++) {
        const api *a;
        void *library = load(argv[1], &a);
        if (i == 0)
            cycle_environments(a);
        share_session(a, 1);
        share_session(a, 2);
        release_in_any_order(a);
        run_in_background(a);
        check(!dlclose(library), "unloaded");
    }
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
