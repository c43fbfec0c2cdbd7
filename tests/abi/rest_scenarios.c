/* rest_scenarios.c - what else clients set and ask: loggers, threads, profiles, allocators, memory,
 * containers, weights from elsewhere, sparse values on a client's memory, runs in the background.
 */
#include "differ.h"

#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static float numbers[6] = {1, -2, 3, 4, 5.5f, -6};

static void run_add(side *s, OrtSession *session, const OrtRunOptions *options)
{
    const char *in[] = {"x"}, *out[] = {"y"};
    int64_t dims[] = {2, 3};
    OrtValue *x = floats(s, numbers, 2, dims), *y = NULL;
    const OrtValue *feeds[] = {x};
    if (session && GOOD(s, Run, session, options, in, feeds, 1, out, 1, &y))
        say_value(s, y);
    s->api->ReleaseValue(y);
    s->api->ReleaseValue(x);
}

static OrtSessionOptions *quiet_options(side *s)
{
    OrtSessionOptions *o = NULL;
    GOOD(s, CreateSessionOptions, &o);
    GOOD(s, SetSessionLogSeverityLevel, o, 4);
    return o;
}

/* ---------------------------------------------------------------------- environments, loggers */

typedef struct heard {
    int lines, wrong;
} heard;

static void hear(void *param, int severity, const char *category, const char *id,
                 const char *location, const char *message)
{
    heard *h = param;
    h->lines++;
    h->wrong += severity < 0 || severity > 4 || !category || !id || !location || !message;
}

/* The row's environment makes room: there is one. i: which function makes the next */
static void another_env(side *s, const row *r)
{
    heard h = {0, 0};
    OrtThreadingOptions *threading = NULL;
    GOOD(s, CreateThreadingOptions, &threading);
    GOOD(s, SetGlobalIntraOpNumThreads, threading, 2);
    GOOD(s, SetGlobalIntraOpThreadAffinity, threading, r->a ? r->a : "1");
    s->api->ReleaseEnv(s->env);
    s->env = NULL;
    OrtEnvCreationOptions made = {.version = ABI_VERSION,
                                  .severity = ABI_VERBOSE,
                                  .log_id = r->b ? r->b : "another",
                                  .log = hear,
                                  .log_param = &h,
                                  .threading = threading};
    if (r->i == 1)
        GOOD(s, CreateEnvWithCustomLogger, hear, &h, ABI_VERBOSE, "another", &s->env);
    else if (r->i == 2)
        GOOD(s, CreateEnvWithGlobalThreadPools, ABI_FATAL, "another", threading, &s->env);
    else if (r->i == 3)
        GOOD(s, CreateEnvWithCustomLoggerAndGlobalThreadPools, hear, &h, ABI_VERBOSE, "another",
             threading, &s->env);
    else
        GOOD(s, CreateEnvWithOptions, &made, &s->env);
    OrtSessionOptions *o = NULL;
    GOOD(s, CreateSessionOptions, &o);
    if (r->i != 1 && s->env)
        GOOD(s, DisablePerSessionThreads, o);
    OrtSession *session = s->env ? open_model(s, "add", o) : NULL;
    run_add(s, session, NULL);
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(o);
    s->api->ReleaseThreadingOptions(threading);
    s->api->ReleaseEnv(s->env);
    s->env = NULL;
    say(s, "heard %d, wrong %d", h.lines > 0, h.wrong);
}

static void own_log(side *s, const row *r)
{
    heard h = {0, 0};
    OrtSessionOptions *o = NULL;
    GOOD(s, CreateSessionOptions, &o);
    GOOD(s, SetUserLoggingFunction, o, hear, &h);
    GOOD(s, SetSessionLogSeverityLevel, o, (int)r->i);
    GOOD(s, SetSessionLogVerbosityLevel, o, 1);
    GOOD(s, SetSessionLogId, o, "mine");
    OrtSession *session = open_model(s, "add", o);
    run_add(s, session, NULL);
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(o);
    say(s, "heard %d, wrong %d", h.lines > 0, h.wrong);
}

/* ------------------------------------------------------------------------------------- threads */

typedef struct crew {
    int asked, made, joined;
} crew;

static pthread_t hands[8];

typedef struct hand {
    void (*work)(void *);
    void *arg;
} hand;

static void *do_work(void *arg)
{
    hand h = *(hand *)arg;
    free(arg);
    h.work(h.arg);
    return NULL;
}

static crew *the_crew;

static void *make_thread(void *options, void (*work)(void *), void *work_arg)
{
    crew *c = options;
    hand *h = malloc(sizeof *h);
    *h = (hand){work, work_arg};
    the_crew = c;
    if (c->asked++ >= 8 || pthread_create(&hands[c->made], NULL, do_work, h)) {
        free(h);
        return NULL;
    }
    return &hands[c->made++];
}

static void *make_none(void *options, void (*work)(void *), void *work_arg) { return NULL; }

static void join_thread(const void *thread)
{
    pthread_join(*(const pthread_t *)thread, NULL);
    the_crew->joined++;
}

/* i: threads; k: 1 no join, 2 none is made */
static void own_threads(side *s, const row *r)
{
    crew c = {0, 0, 0};
    OrtSessionOptions *o = quiet_options(s);
    GOOD(s, SetIntraOpNumThreads, o, (int)r->i);
    GOOD(s, SetInterOpNumThreads, o, 1);
    GOOD(s, SessionOptionsSetCustomCreateThreadFn, o, r->k == 2 ? make_none : make_thread);
    GOOD(s, SessionOptionsSetCustomThreadCreationOptions, o, &c);
    if (r->k != 1)
        GOOD(s, SessionOptionsSetCustomJoinThreadFn, o, join_thread);
    OrtSession *session = open_model(s, "add", o);
    s->api->ReleaseSessionOptions(o);
    run_add(s, session, NULL);
    s->api->ReleaseSession(session);
    say(s, "%d made, %d joined", c.made, c.joined);
}

static void own_global_threads(side *s, const row *r)
{
    crew c = {0, 0, 0};
    OrtThreadingOptions *threading = NULL;
    GOOD(s, CreateThreadingOptions, &threading);
    GOOD(s, SetGlobalIntraOpNumThreads, threading, (int)r->i);
    GOOD(s, SetGlobalInterOpNumThreads, threading, 1);
    GOOD(s, SetGlobalCustomCreateThreadFn, threading, make_thread);
    GOOD(s, SetGlobalCustomThreadCreationOptions, threading, &c);
    GOOD(s, SetGlobalCustomJoinThreadFn, threading, join_thread);
    s->api->ReleaseEnv(s->env);
    s->env = NULL;
    GOOD(s, CreateEnvWithGlobalThreadPools, ABI_FATAL, "crew", threading, &s->env);
    s->api->ReleaseThreadingOptions(threading);
    OrtSessionOptions *o = quiet_options(s);
    GOOD(s, DisablePerSessionThreads, o);
    OrtSession *session = s->env ? open_model(s, "add", o) : NULL;
    run_add(s, session, NULL);
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(o);
    s->api->ReleaseEnv(s->env);
    s->env = NULL;
    say(s, "%d made, %d joined", c.made, c.joined);
}

/* ------------------------------------------------------------------------------------ settings */

static void settings(side *s, const row *r)
{
    OrtSessionOptions *o = quiet_options(s);
    GOOD(s, DisableCpuMemArena, o);
    if (r->i)
        GOOD(s, EnableCpuMemArena, o);
    GOOD(s, SetDeterministicCompute, o, r->i);
    GOOD(s, SessionOptionsSetEpSelectionPolicy, o, (int)r->k);
    OrtSession *session = open_model(s, "add", o);
    run_add(s, session, NULL);
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(o);
}

static void what_there_is(side *s, const row *r)
{
    char **names = NULL;
    int count = 0, has = 0;
    if (GOOD(s, GetAvailableProviders, &names, &count))
        for (int i = 0; i < count; i++)
            has |= !strcmp(names[i], "CPUExecutionProvider");
    say(s, "the processor: %d", has);
    GOOD(s, ReleaseAvailableProviders, names, count);
    say(s, "training: %d", s->api->GetTrainingApi(1) != NULL);
    say(s, "build: %d", !strncmp(s->api->GetBuildInfoString(), "ORT Build Info: ", 16));
    say(s, "experiment: %d", s->api->GetExperimentalFunction("none such") != NULL);
}

static void hardware(side *s, const row *r)
{
    const OrtEpDevice *const *list = NULL;
    size_t count = 0;
    GOOD(s, GetEpDevices, s->env, &list, &count);
    const OrtHardwareDevice *cpu = count ? s->api->EpDevice_Device(list[0]) : NULL;
    if (!cpu)
        return;
    say(s, "type %d, vendor %d, pairs %d %d %d", s->api->HardwareDevice_Type(cpu),
        s->api->HardwareDevice_Vendor(cpu) != NULL, s->api->HardwareDevice_Metadata(cpu) != NULL,
        s->api->EpDevice_EpMetadata(list[0]) != NULL, s->api->EpDevice_EpOptions(list[0]) != NULL);
    say(s, "made by '%s' %u", s->api->HardwareDevice_Vendor(cpu),
        s->api->HardwareDevice_VendorId(cpu));
    (void)s->api->HardwareDevice_DeviceId(cpu);
    (void)s->api->EpDevice_MemoryInfo(list[0], 0);
    GOOD(s, GetNumHardwareDevices, s->env, &count);
    const OrtHardwareDevice *all[16] = {NULL};
    if (count <= 16 && GOOD(s, GetHardwareDevices, s->env, all, count))
        say(s, "first %d", all[0] != NULL);
}

/* ------------------------------------------------------------------------- profiles, optimized */

static bool begins_with_bracket(const char *path)
{
    FILE *file = fopen(path, "rb");
    int first = file ? fgetc(file) : EOF;
    if (file)
        fclose(file);
    return first == '[';
}

static void profiled(side *s, const row *r)
{
    char prefix[] = "/tmp/abi_profile_XXXXXX", *path = NULL;
    int hold = mkstemp(prefix);
    uint64_t start = 0;
    OrtSessionOptions *o = quiet_options(s);
    GOOD(s, EnableProfiling, o, prefix);
    if (r->i)
        GOOD(s, DisableProfiling, o);
    OrtSession *session = open_model(s, "add", o);
    run_add(s, session, NULL);
    if (session && GOOD(s, SessionGetProfilingStartTimeNs, session, &start) && !r->i)
        say(s, "started %d", start > 0);
    if (session && GOOD(s, SessionEndProfiling, session, s->allocator, &path)) {
        say(s, "named %d, a trace %d", !strncmp(path, prefix, strlen(prefix)),
            begins_with_bracket(path));
        unlink(path);
        s->api->AllocatorFree(s->allocator, path);
    }
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(o);
    close(hold);
    unlink(prefix);
}

/* The files that begin with `prefix`, which are removed; how many of them are traces. */
static void say_traces(side *s, const char *prefix)
{
    char pattern[4096];
    glob_t found;
    size_t traces = 0;
    snprintf(pattern, sizeof pattern, "%s_*.json", prefix);
    if (glob(pattern, 0, NULL, &found))
        found.gl_pathc = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        traces += begins_with_bracket(found.gl_pathv[i]);
        unlink(found.gl_pathv[i]);
    }
    say(s, "%zu files, %zu traces", found.gl_pathc, traces);
    globfree(&found);
}

/* A run with a trace of its own, then one without. */
static void profiled_run(side *s, const row *r)
{
    char prefix[] = "/tmp/abi_run_profile_XXXXXX";
    int hold = mkstemp(prefix);
    OrtRunOptions *o = NULL;
    OrtSession *session = open_model(s, "add", NULL);
    GOOD(s, CreateRunOptions, &o);
    GOOD(s, RunOptionsEnableProfiling, o, prefix);
    if (!r->i) {
        run_add(s, session, o);
        say_traces(s, prefix);
    }
    GOOD(s, RunOptionsDisableProfiling, o);
    run_add(s, session, o);
    say_traces(s, prefix);
    s->api->ReleaseRunOptions(o);
    s->api->ReleaseSession(session);
    close(hold);
    unlink(prefix);
}

static void optimized(side *s, const row *r)
{
    char path[] = "/tmp/abi_optimized_XXXXXX";
    int hold = mkstemp(path);
    OrtSessionOptions *o = quiet_options(s);
    GOOD(s, SetSessionGraphOptimizationLevel, o, (int)r->i);
    GOOD(s, SetOptimizedModelFilePath, o, path);
    OrtSession *session = open_model(s, r->a, o);
    run_add(s, session, NULL);
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(o);
    session = open_model(s, path, NULL);
    run_add(s, session, NULL);
    s->api->ReleaseSession(session);
    close(hold);
    unlink(path);
}

/* -------------------------------------------------------------------------- allocators, memory */

static int taken;

static void *own_alloc(OrtAllocator *allocator, size_t bytes)
{
    taken++;
    return malloc(bytes);
}

static void own_free(OrtAllocator *allocator, void *block)
{
    taken--;
    free(block);
}

static OrtMemoryInfo *own_memory;
static const OrtMemoryInfo *own_info(const OrtAllocator *allocator) { return own_memory; }

static const api *stats_api;

static OrtStatus *own_stats(const OrtAllocator *allocator, OrtKeyValuePairs **out)
{
    stats_api->CreateKeyValuePairs(out);
    stats_api->AddKeyValuePair(*out, "Taken", "1");
    return NULL;
}

static void own_allocator(side *s, const row *r)
{
    OrtAllocator mine = {.version = 23,
                         .Alloc = own_alloc,
                         .Free = own_free,
                         .Info = own_info,
                         .Reserve = own_alloc,
                         .GetStats = own_stats};
    stats_api = s->api;
    OrtKeyValuePairs *stats = NULL;
    GOOD(s, CreateCpuMemoryInfo, 0, 0, &own_memory);
    if (GOOD(s, RegisterAllocator, s->env, &mine))
        GOOD(s, UnregisterAllocator, s->env, own_memory);
    GOOD(s, RegisterAllocator, s->env, NULL);
    OrtSession *session = open_model(s, "add", NULL);
    char *name = NULL; /* a client's allocator gives the memory of what it asks for */
    taken = 0;
    if (session && GOOD(s, SessionGetInputName, session, 0, &mine, &name)) {
        say(s, "'%s' in %d", name, taken);
        GOOD(s, AllocatorFree, &mine, name);
        say(s, "left %d", taken);
    }
    if (GOOD(s, AllocatorGetStats, &mine, &stats))
        say(s, "'%s'", s->api->GetKeyValue(stats, "Taken"));
    s->api->ReleaseKeyValuePairs(stats);
    s->api->ReleaseSession(session);
    s->api->ReleaseMemoryInfo(own_memory);
}

static void session_allocator(side *s, const row *r)
{
    OrtMemoryInfo *memory = NULL;
    OrtAllocator *made = NULL;
    void *block = NULL;
    OrtSession *session = open_model(s, "add", NULL);
    GOOD(s, CreateMemoryInfo, r->a, 0, 0, 0, &memory);
    if (session && GOOD(s, CreateAllocator, session, memory, &made)) {
        GOOD(s, AllocatorAlloc, made, 64, &block);
        say(s, "block %d", block != NULL);
        GOOD(s, AllocatorFree, made, block);
        s->api->ReleaseAllocator(made);
    }
    s->api->ReleaseMemoryInfo(memory);
    s->api->ReleaseSession(session);
}

static void registered_2(side *s, const row *r)
{
    OrtMemoryInfo *memory = NULL;
    GOOD(s, CreateCpuMemoryInfo, 0, 0, &memory);
    if (GOOD(s, CreateAndRegisterAllocatorV2, s->env, r->a, memory, NULL, NULL, NULL, 0))
        GOOD(s, UnregisterAllocator, s->env, memory);
    s->api->ReleaseMemoryInfo(memory);
}

static void memory_2(side *s, const row *r)
{
    OrtMemoryInfo *m = NULL;
    const char *name = NULL;
    int type = -1;
    if (!GOOD(s, CreateMemoryInfo_V2, "Place", (int)r->i, 7, 1, (int)r->k, 0, 0, &m))
        return;
    GOOD(s, MemoryInfoGetName, m, &name);
    s->api->MemoryInfoGetDeviceType(m, &type);
    say(s, "'%s' device %d vendor %u memory %d", name, type, s->api->MemoryInfoGetVendorId(m),
        s->api->MemoryInfoGetDeviceMemType(m));
    s->api->ReleaseMemoryInfo(m);
}

static void where_values_are(side *s, const row *r)
{
    OrtSession *session = open_model(s, "defaults", NULL);
    const OrtMemoryInfo *in[2] = {NULL, NULL}, *out[1] = {NULL}, *memory = NULL;
    const OrtEpDevice *devices[2] = {NULL, NULL};
    const char *name = "";
    int64_t dims[] = {2, 3};
    if (GOOD(s, SessionGetMemoryInfoForInputs, session, in, 1) &&
        GOOD(s, MemoryInfoGetName, in[0], &name))
        say(s, "'%s'", name);
    if (GOOD(s, SessionGetMemoryInfoForOutputs, session, out, 1) &&
        GOOD(s, MemoryInfoGetName, out[0], &name))
        say(s, "'%s'", name);
    GOOD(s, SessionGetEpDeviceForInputs, session, devices, 1);
    GOOD(s, SessionGetEpDeviceForOutputs, session, devices, 1);
    OrtValue *x = floats(s, numbers, 2, dims);
    if (GOOD(s, GetTensorMemoryInfo, x, &memory) && GOOD(s, MemoryInfoGetName, memory, &name))
        say(s, "'%s'", name);
    int type = -1;
    const int64_t *read = NULL;
    size_t rank = 0;
    if (GOOD(s, GetTensorElementTypeAndShapeDataReference, x, &type, &read, &rank))
        say(s, "type %d rank %zu %lld", type, rank, (long long)read[1]);
    s->api->ReleaseValue(x);
    s->api->ReleaseSession(session);
}

/* The memory is the value's, and goes through the client's allocator with it. */
static void given_away(side *s, const row *r)
{
    OrtAllocator mine = {.version = 18,
                         .Alloc = own_alloc,
                         .Free = own_free,
                         .Info = own_info,
                         .Reserve = own_alloc};
    int64_t dims[] = {2, 3};
    OrtValue *value = NULL;
    taken = 0;
    GOOD(s, CreateCpuMemoryInfo, 0, 0, &own_memory);
    float *block = own_alloc(&mine, sizeof numbers);
    memcpy(block, numbers, sizeof numbers);
    if (GOOD(s, CreateTensorWithDataAndDeleterAsOrtValue, &mine, block, (size_t)r->i, dims, 2, 1,
             &value))
        say_value(s, value);
    else
        own_free(&mine, block);
    s->api->ReleaseValue(value);
    say(s, "left %d", taken);
    s->api->ReleaseMemoryInfo(own_memory);
}

/* --------------------------------------------------------------------------------------- types */

static void denotation(side *s, const row *r)
{
    OrtTypeInfo *type = NULL;
    const char *text = NULL;
    size_t length = 99;
    OrtSession *session = open_model(s, r->a, NULL);
    if (session && GOOD(s, SessionGetInputTypeInfo, session, 0, &type) &&
        GOOD(s, GetDenotationFromTypeInfo, type, &text, &length))
        say(s, "'%.*s'", (int)length, text ? text : "");
    s->api->ReleaseTypeInfo(type);
    s->api->ReleaseMapTypeInfo(NULL);
    s->api->ReleaseSequenceTypeInfo(NULL);
    s->api->ReleaseSession(session);
}

/* ------------------------------------------------------------------ weights from elsewhere */

/* i: 0 from the file, 1 as a value, 2 as a file in memory, 3 as a value of another model's type */
static void external(side *s, const row *r)
{
    static float weights[] = {100, 200, 300, 0};
    const char *names[] = {r->a}, *files[] = {r->b};
    char *bytes[] = {(char *)weights};
    size_t sizes[] = {(size_t)r->k};
    int64_t dims[] = {r->i == 3 ? 4 : 3};
    OrtSessionOptions *o = quiet_options(s);
    OrtValue *w = floats(s, weights, 1, dims);
    const OrtValue *values[] = {w};
    if (r->i == 1 || r->i == 3) {
        GOOD(s, AddExternalInitializers, o, names, values, 1);
        GOOD(s, AddExternalInitializers, o, names, values, 1);
    }
    if (r->i == 2) {
        GOOD(s, AddExternalInitializersFromFilesInMemory, o, files, bytes, sizes, 1);
        GOOD(s, AddExternalInitializersFromFilesInMemory, o, files, bytes, sizes, 1);
    }
    OrtSession *session = open_model(s, "external", o);
    run_add(s, session, NULL);
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(o);
    s->api->ReleaseValue(w);
}

static void containers(side *s, const row *r)
{
    OrtPrepackedWeightsContainer *container = NULL;
    OrtSessionOptions *o = quiet_options(s);
    OrtSession *first = NULL, *second = NULL;
    static char bytes[4096];
    FILE *file = fopen(model_path("weights"), "rb");
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    GOOD(s, CreatePrepackedWeightsContainer, &container);
    GOOD(s, CreateSessionWithPrepackedWeightsContainer, s->env, model_path("weights"), o,
         container, &first);
    GOOD(s, CreateSessionFromArrayWithPrepackedWeightsContainer, s->env, bytes, size, o, container,
         &second);
    run_add(s, first, NULL);
    s->api->ReleaseSession(first);
    run_add(s, second, NULL);
    s->api->ReleaseSession(second);
    s->api->ReleasePrepackedWeightsContainer(container);
    s->api->ReleaseSessionOptions(o);
}

/* ------------------------------------------------------------- sparse values on foreign memory */

/* i: 0 COO, 1 CSR, 2 blocks; k: indices of COO */
static void sparse_foreign(side *s, const row *r)
{
    static int64_t dims[] = {3, 4}, count[] = {3}, blocks[] = {2, 2, 1}, at_dims[] = {2, 1};
    static int64_t linear[] = {0, 5, 11, 12}, inner[] = {0, 1, 3}, outer[] = {0, 1, 2, 3};
    static int32_t at[] = {0, 1};
    OrtMemoryInfo *m = NULL;
    OrtValue *value = NULL;
    const void *read = NULL;
    int format = -1;
    GOOD(s, CreateCpuMemoryInfo, 1, 0, &m);
    if (GOOD(s, CreateSparseTensorWithValuesAsOrtValue, m, numbers, dims, 2,
             r->i == 2 ? blocks : count, r->i == 2 ? 3 : 1, 1, &value)) {
        if (r->i == 0)
            GOOD(s, UseCooIndices, value, linear, (size_t)r->k);
        if (r->i == 1)
            GOOD(s, UseCsrIndices, value, inner, 3, outer, 4);
        if (r->i == 2)
            GOOD(s, UseBlockSparseIndices, value, at_dims, 2, at);
        GOOD(s, GetSparseTensorFormat, value, &format);
        say(s, "format %d", format);
        if (format > 0 && GOOD(s, GetSparseTensorValues, value, &read))
            say(s, "in place %d", read == numbers);
    }
    s->api->ReleaseValue(value);
    s->api->ReleaseMemoryInfo(m);
}

/* --------------------------------------------------------------------------- in the background */

typedef struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool over;
    OrtStatus *status;
    size_t count;
} waiting;

static void finished(void *user_data, OrtValue **outputs, size_t count, OrtStatus *status)
{
    waiting *w = user_data;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    w->status = status;
    w->count = count;
    pthread_cond_signal(&w->done);
    pthread_mutex_unlock(&w->lock);
}

static void in_background(side *s, const row *r)
{
    waiting w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, NULL, 0};
    OrtSessionOptions *o = quiet_options(s);
    GOOD(s, SetIntraOpNumThreads, o, 2);
    OrtSession *session = open_model(s, "add", o);
    const char *in[] = {r->a}, *out[] = {"y"};
    int64_t dims[] = {2, 3};
    OrtValue *x = floats(s, numbers, 2, dims), *y = NULL;
    const OrtValue *feeds[] = {x};
    if (session && GOOD(s, RunAsync, session, NULL, in, feeds, 1, out, 1, &y, finished, &w)) {
        pthread_mutex_lock(&w.lock);
        while (!w.over)
            pthread_cond_wait(&w.done, &w.lock);
        pthread_mutex_unlock(&w.lock);
        bool ran = good(s, "finished", w.status);
        say(s, "%zu", ran ? w.count : 0);
        if (ran)
            say_value(s, y);
    }
    s->api->ReleaseValue(y);
    s->api->ReleaseValue(x);
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(o);
}

const row rest_rows[] = {
    {"env: a logger", another_env, .i = 1},
    {"env: threads for all", another_env, .i = 2},
    {"env: threads for all and a logger", another_env, .i = 3},
    {"env: with options", another_env, .i = 4},
    {"env: an affinity too many", another_env, "1;2;3", .i = 2},
    {"env: an affinity of letters", another_env, "a", .i = 2},
    {"a session's logger: all", own_log, .i = 0},
    {"a session's logger: errors", own_log, .i = 4},
    {"threads of one's own", own_threads, .i = 2},
    {"threads of one's own: three", own_threads, .i = 3},
    {"threads of one's own: none needed", own_threads, .i = 1},
    {"threads of one's own: nobody joins", own_threads, .i = 2, .k = 1},
    {"threads of one's own: none is made", own_threads, .i = 2, .k = 2},
    {"threads of one's own, for all", own_global_threads, .i = 2},
    {"settings", settings, .i = 0, .k = 0},
    {"settings: others", settings, .i = 1, .k = 1},
    {"what there is", what_there_is},
    {"hardware", hardware},
    {"profile", profiled},
    {"profile: disabled again", profiled, .i = 1},
    {"profile: of a run", profiled_run},
    {"profile: of a run, disabled again", profiled_run, .i = 1},
    {"optimized: level 1", optimized, "weights", .i = 1},
    {"optimized: level 2", optimized, "add", .i = 2},
    {"allocator: a client's", own_allocator},
    {"allocator: of a session", session_allocator, "Cpu"},
    {"allocator: of a session, for CUDA", session_allocator, "Cuda"},
    {"allocator: registered for a provider", registered_2, "CPUExecutionProvider"},
    {"allocator: registered for none", registered_2, "none such"},
    {"memory: of two parts, a processor's", memory_2, .i = 0, .k = 0},
    {"memory: of two parts, a device's", memory_2, .i = 1, .k = 5},
    {"where values are", where_values_are},
    {"memory given away", given_away, .i = 24},
    {"memory given away: too little", given_away, .i = 8},
    {"denotation", denotation, "denoted"},
    {"denotation: none", denotation, "add"},
    {"external: from the file", external, "w", .b = "external.bin"},
    {"external: as a value", external, "w", .b = "external.bin", .i = 1, .texts = true},
    {"external: as a value of another name", external, "v", .b = "external.bin", .i = 1},
    {"external: as a file", external, "w", .b = "external.bin", .i = 2, .k = 12, .texts = true},
    {"external: as a file of another name", external, "w", .b = "other.bin", .i = 2, .k = 12,
     .known = "there a file that isn't given is not looked for, here it is beside the model"},
    {"external: as a file that is short", external, "w", .b = "external.bin", .i = 2, .k = 8,
     .known = "there a failure, here an invalid graph"},
    {"external: as a value of another shape", external, "w", .b = "external.bin", .i = 3},
    {"containers of weights", containers},
    {"sparse, foreign: COO", sparse_foreign, .i = 0, .k = 3},
    {"sparse, foreign: COO, a wrong number", sparse_foreign, .i = 0, .k = 4},
    {"sparse, foreign: CSR", sparse_foreign, .i = 1},
    {"sparse, foreign: blocks", sparse_foreign, .i = 2},
    {"in the background", in_background, "x"},
    {"in the background: wrong name", in_background, "nonsense", .texts = true},
};
const size_t rest_row_count = sizeof rest_rows / sizeof *rest_rows;
