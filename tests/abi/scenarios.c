/* scenarios.c - how clients use the ABI, and misuse it, as rows of tables.
 *
 * A scenario is a function over one library; a row gives it a model, names and numbers. What needs
 * a file of its own has one: models of ONNX's tests are conformance_rows.c.
 */
#include "differ.h"

#include <stdlib.h>
#include <string.h>

static const float data[64] = {1, -2, 3, 4, 5.5f, -6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* ------------------------------------------------------------------------------- environments */

static void env_again(side *s, const row *r)
{
    OrtEnv *second = NULL;
    GOOD(s, CreateEnv, ABI_ERROR, "second", &second);
    say(s, "the same: %d", second == s->env);
    s->api->ReleaseEnv(second);
    GOOD(s, EnableTelemetryEvents, s->env);
    GOOD(s, DisableTelemetryEvents, s->env);
    GOOD(s, SetLanguageProjection, s->env, 3);
    GOOD(s, UpdateEnvWithCustomLogLevel, s->env, ABI_FATAL);
}

static void status_texts(side *s, const row *r)
{
    OrtStatus *status = s->api->CreateStatus((int)r->i, r->a);
    good(s, "made", status);
}

static void arena_config(side *s, const row *r)
{
    OrtArenaCfg *config = NULL;
    size_t value = 16;
    if (r->a)
        GOOD(s, CreateArenaCfgV2, &r->a, &value, 1, &config);
    else
        GOOD(s, CreateArenaCfg, 0, -1, -1, -1, &config);
    s->api->ReleaseArenaCfg(config);
}

static void threading(side *s, const row *r)
{
    OrtThreadingOptions *options = NULL;
    GOOD(s, CreateThreadingOptions, &options);
    GOOD(s, SetGlobalIntraOpNumThreads, options, (int)r->i);
    GOOD(s, SetGlobalInterOpNumThreads, options, 1);
    GOOD(s, SetGlobalSpinControl, options, (int)r->k);
    GOOD(s, SetGlobalDenormalAsZero, options);
    s->api->ReleaseThreadingOptions(options);
}

static const row environments[] = {
    {"env: a second one", env_again},
    {"status: a text", status_texts, "what went wrong", .i = 2, .texts = true},
    {"status: no text", status_texts, "", .i = 9, .texts = true},
    {"status: a long text", status_texts,
     "0123456789012345678901234567890123456789012345678901234567890123456789", .i = 11,
     .texts = true},
    {"arena config", arena_config},
    {"arena config: max_mem", arena_config, "max_mem"},
    {"arena config: strategy", arena_config, "arena_extend_strategy"},
    {"arena config: unknown key", arena_config, "nonsense", .texts = true},
    {"threading options", threading, .i = 2, .k = 1},
    {"threading options: spin 2", threading, .i = 1, .k = 2, .texts = true},
};

/* ------------------------------------------------------------------------------------ options */

static void level(side *s, const row *r)
{
    OrtSessionOptions *o = NULL;
    GOOD(s, CreateSessionOptions, &o);
    GOOD(s, SetSessionGraphOptimizationLevel, o, (int)r->i);
    s->api->ReleaseSessionOptions(o);
}

static void mode(side *s, const row *r)
{
    OrtSessionOptions *o = NULL;
    int now = -1, pattern = -1;
    GOOD(s, CreateSessionOptions, &o);
    GOOD(s, SetSessionExecutionMode, o, (int)r->i);
    GOOD(s, GetSessionExecutionMode, o, &now);
    GOOD(s, DisableMemPattern, o);
    GOOD(s, GetMemPatternEnabled, o, &pattern);
    say(s, "mode %d, pattern %d", now, pattern);
    GOOD(s, EnableMemPattern, o);
    GOOD(s, GetMemPatternEnabled, o, &pattern);
    say(s, "pattern %d", pattern);
    s->api->ReleaseSessionOptions(o);
}

static void entries(side *s, const row *r)
{
    OrtSessionOptions *o = NULL, *clone = NULL;
    OrtKeyValuePairs *pairs = NULL;
    int has = -1;
    size_t size = 0;
    char text[64] = "";
    GOOD(s, CreateSessionOptions, &o);
    GOOD(s, AddSessionConfigEntry, o, r->a, r->b);
    GOOD(s, CloneSessionOptions, o, &clone);
    s->api->ReleaseSessionOptions(o);
    GOOD(s, HasSessionConfigEntry, clone, "session.intra_op.allow_spinning", &has);
    say(s, "has %d", has);
    if (GOOD(s, GetSessionConfigEntry, clone, "session.intra_op.allow_spinning", NULL, &size))
        say(s, "size %zu", size);
    if (GOOD(s, GetSessionConfigEntry, clone, "session.intra_op.allow_spinning", text, &size))
        say(s, "'%s' %zu", text, size);
    size = 1;
    GOOD(s, GetSessionConfigEntry, clone, "session.intra_op.allow_spinning", text, &size);
    say(s, "size %zu", size);
    if (GOOD(s, GetSessionOptionsConfigEntries, clone, &pairs)) {
        const char *value = s->api->GetKeyValue(pairs, "session.intra_op.allow_spinning");
        say(s, "'%s'", value ? value : "(null)");
    }
    s->api->ReleaseKeyValuePairs(pairs);
    s->api->ReleaseSessionOptions(clone);
}

static void long_key(side *s, const row *r)
{
    OrtSessionOptions *o = NULL;
    char *key = malloc((size_t)r->i + 1), *value = malloc((size_t)r->k + 1);
    memset(key, 'k', (size_t)r->i);
    memset(value, 'v', (size_t)r->k);
    key[r->i] = value[r->k] = 0;
    GOOD(s, CreateSessionOptions, &o);
    GOOD(s, AddSessionConfigEntry, o, key, value);
    s->api->ReleaseSessionOptions(o);
    free(key);
    free(value);
}

static void provider(side *s, const row *r)
{
    OrtSessionOptions *o = NULL;
    GOOD(s, CreateSessionOptions, &o);
    GOOD(s, SessionOptionsAppendExecutionProvider, o, r->a, NULL, NULL, 0);
    s->api->ReleaseSessionOptions(o);
}

static void pairs(side *s, const row *r)
{
    OrtKeyValuePairs *p = NULL;
    const char *const *keys = NULL, *const *values = NULL;
    size_t count = 0;
    s->api->CreateKeyValuePairs(&p);
    s->api->AddKeyValuePair(p, "a", "1");
    s->api->AddKeyValuePair(p, "b", "2");
    s->api->AddKeyValuePair(p, "a", r->a);
    s->api->AddKeyValuePair(p, "", "empty");
    s->api->RemoveKeyValuePair(p, r->b);
    s->api->GetKeyValuePairs(p, &keys, &values, &count);
    say(s, "%zu pairs", count);
    const char *a = s->api->GetKeyValue(p, "a"), *b = s->api->GetKeyValue(p, "b");
    say(s, "%s %s", a ? a : "-", b ? b : "-");
    s->api->ReleaseKeyValuePairs(p);
}

static void run_option(side *s, const row *r)
{
    OrtRunOptions *o = NULL;
    int n = -7;
    const char *tag = NULL;
    GOOD(s, CreateRunOptions, &o);
    GOOD(s, RunOptionsGetRunTag, o, &tag);
    say(s, "'%s'", tag);
    GOOD(s, RunOptionsGetRunLogSeverityLevel, o, &n);
    say(s, "%d", n);
    GOOD(s, RunOptionsSetRunTag, o, r->a);
    GOOD(s, RunOptionsGetRunTag, o, &tag);
    say(s, "'%s'", tag);
    GOOD(s, RunOptionsSetRunLogVerbosityLevel, o, 3);
    GOOD(s, RunOptionsGetRunLogVerbosityLevel, o, &n);
    say(s, "%d", n);
    GOOD(s, RunOptionsSetRunLogSeverityLevel, o, 2);
    GOOD(s, RunOptionsGetRunLogSeverityLevel, o, &n);
    say(s, "%d", n);
    GOOD(s, AddRunConfigEntry, o, "key", "value");
    const char *value = s->api->GetRunConfigEntry(o, "key");
    say(s, "%s", value ? value : "(null)");
    value = s->api->GetRunConfigEntry(o, "other");
    say(s, "%s", value ? value : "(null)");
    s->api->ReleaseRunOptions(o);
}

static const row options[] = {
    {"level 0", level, .i = 0},
    {"level 1", level, .i = 1},
    {"level 2", level, .i = 2},
    {"level 3", level, .i = 3},
    {"level 99", level, .i = 99},
    {"level 7", level, .i = 7, .texts = true},
    {"level -1", level, .i = -1, .texts = true},
    {"mode 0", mode, .i = 0},
    {"mode 1", mode, .i = 1},
    {"mode 2", mode, .i = 2, .texts = true},
    {"config: there", entries, "session.intra_op.allow_spinning", "0", .texts = true},
    {"config: empty value", entries, "session.intra_op.allow_spinning", "", .texts = true},
    {"config: not there", entries, "another", "0", .texts = true},
    {"config: empty key", entries, "", "0", .texts = true},
    {"config: key of 1024", long_key, .i = 1024, .k = 10, .texts = true},
    {"config: key of 1025", long_key, .i = 1025, .k = 10, .texts = true},
    {"config: value of 2048", long_key, .i = 10, .k = 2048, .texts = true},
    {"config: value of 8193", long_key, .i = 10, .k = 8193, .texts = true},
    {"provider: XNNPACK", provider, "XNNPACK", .texts = true},
    {"provider: QNN", provider, "QNN", .texts = true},
    {"provider: nonsense", provider, "nonsense", .texts = true},
    {"provider: CPU", provider, "CPU", .texts = true},
    {"pairs: replaced", pairs, "9", "none"},
    {"pairs: removed", pairs, "9", "a"},
    {"pairs: empty value", pairs, "", "b"},
    {"run options", run_option, "a tag", .texts = true},
    {"run options: no tag", run_option, "", .texts = true},
};

/* ------------------------------------------------------------------------- memory, allocators */

static void memory_info(side *s, const row *r)
{
    OrtMemoryInfo *m = NULL, *cpu = NULL;
    const char *name = NULL;
    int id = -7, type = -7, mem = -7, device = -7, equal = -7;
    if (!GOOD(s, CreateMemoryInfo, r->a, (int)r->i, 0, (int)r->k, &m))
        return;
    GOOD(s, CreateCpuMemoryInfo, 1, 0, &cpu);
    GOOD(s, MemoryInfoGetName, m, &name);
    GOOD(s, MemoryInfoGetId, m, &id);
    GOOD(s, MemoryInfoGetType, m, &type);
    GOOD(s, MemoryInfoGetMemType, m, &mem);
    s->api->MemoryInfoGetDeviceType(m, &device);
    GOOD(s, CompareMemoryInfo, m, cpu, &equal);
    say(s, "'%s' %d %d %d device %d, equal %d", name, id, type, mem, device, equal);
    say(s, "vendor %u, memory %d", s->api->MemoryInfoGetVendorId(m),
        s->api->MemoryInfoGetDeviceMemType(m));
    s->api->ReleaseMemoryInfo(m);
    s->api->ReleaseMemoryInfo(cpu);
}

static void default_allocator(side *s, const row *r)
{
    const OrtMemoryInfo *m = NULL;
    const char *name = NULL;
    int id = -7, type = -7, mem = -7;
    void *block = NULL;
    GOOD(s, AllocatorGetInfo, s->allocator, &m);
    GOOD(s, MemoryInfoGetName, m, &name);
    GOOD(s, MemoryInfoGetId, m, &id);
    GOOD(s, MemoryInfoGetType, m, &type);
    GOOD(s, MemoryInfoGetMemType, m, &mem);
    say(s, "'%s' %d %d %d", name, id, type, mem);
    GOOD(s, AllocatorAlloc, s->allocator, (size_t)r->i, &block);
    say(s, "block %d", block != NULL);
    if (block)
        memset(block, 1, (size_t)r->i);
    GOOD(s, AllocatorFree, s->allocator, block);
    GOOD(s, AllocatorFree, s->allocator, NULL);
    block = s->allocator->Alloc(s->allocator, 100);
    say(s, "block %d", block != NULL);
    s->allocator->Free(s->allocator, block);
    say(s, "info %d", s->allocator->Info(s->allocator) == m);
}

static void register_allocator(side *s, const row *r)
{
    OrtMemoryInfo *m = NULL;
    OrtArenaCfg *config = NULL;
    GOOD(s, CreateCpuMemoryInfo, 1, 0, &m);
    GOOD(s, CreateArenaCfg, 0, -1, -1, -1, &config);
    GOOD(s, CreateAndRegisterAllocator, s->env, m, config);
    GOOD(s, UnregisterAllocator, s->env, m);
    s->api->ReleaseArenaCfg(config);
    s->api->ReleaseMemoryInfo(m);
}

static const row memory[] = {
    {"memory: Cpu", memory_info, "Cpu", .i = 0},
    {"memory: Cpu, arena", memory_info, "Cpu", .i = 1},
    {"memory: Cpu, input", memory_info, "Cpu", .i = 1, .k = -2},
    {"memory: Cpu, output", memory_info, "Cpu", .i = 1, .k = -1},
    {"memory: Cuda", memory_info, "Cuda", .i = 0},
    {"memory: nonsense", memory_info, "nonsense", .texts = true},
    {"allocator: 1 byte", default_allocator, .i = 1},
    {"allocator: 100,000 bytes", default_allocator, .i = 100000},
    {"allocator: no bytes", default_allocator, .i = 0},
    {"allocator: registered", register_allocator},
};

/* ------------------------------------------------------------------------------------- values */

static void new_tensor(side *s, const row *r)
{
    int64_t dims[] = {2, r->k, 4};
    OrtValue *value = NULL;
    size_t bytes = 0;
    if (!GOOD(s, CreateTensorAsOrtValue, s->allocator, dims, 3, (int)r->i, &value))
        return;
    OrtTypeInfo *type = NULL;
    int is = -1, sparse = -1;
    GOOD(s, GetTypeInfo, value, &type);
    say_type(s, type);
    s->api->ReleaseTypeInfo(type);
    GOOD(s, IsTensor, value, &is);
    GOOD(s, IsSparseTensor, value, &sparse);
    say(s, "tensor %d, sparse %d", is, sparse);
    if (GOOD(s, GetTensorSizeInBytes, value, &bytes))
        say(s, "%zu bytes", bytes);
    s->api->ReleaseValue(value);
}

static void on_memory(side *s, const row *r)
{
    int64_t dims[] = {2, 3}, place[] = {r->k, 1};
    float own[6] = {1, 2, 3, 4, 5, 6};
    OrtMemoryInfo *m = NULL;
    OrtValue *value = NULL;
    void *at = NULL;
    const void *read = NULL;
    GOOD(s, CreateCpuMemoryInfo, 1, 0, &m);
    if (GOOD(s, CreateTensorWithDataAsOrtValue, m, own, (size_t)r->i, dims, 2, 1, &value)) {
        say_value(s, value);
        if (GOOD(s, TensorAt, value, place, 2, &at))
            say(s, "at %g", (double)*(float *)at);
        GOOD(s, TensorAt, value, place, 1, &at);
        GOOD(s, GetTensorData, value, &read);
        say(s, "in place %d", read == own);
    }
    s->api->ReleaseValue(value);
    s->api->ReleaseMemoryInfo(m);
}

static void shapes(side *s, const row *r)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    int64_t dims[] = {r->i, 3, r->k};
    const char *names[] = {"batch", "", "x"};
    size_t count = 0;
    GOOD(s, CreateTensorTypeAndShapeInfo, &info);
    GOOD(s, SetTensorElementType, info, 7);
    GOOD(s, SetDimensions, info, dims, 3);
    GOOD(s, SetSymbolicDimensions, info, names, 3);
    int64_t back[3] = {0};
    const char *symbols[3] = {0};
    GOOD(s, GetDimensions, info, back, 3);
    GOOD(s, GetSymbolicDimensions, info, symbols, 3);
    say(s, "%lld %s %lld %s", (long long)back[0], symbols[0], (long long)back[2], symbols[2]);
    GOOD(s, GetDimensionsCount, info, &count);
    say(s, "rank %zu", count);
    if (GOOD(s, GetTensorShapeElementCount, info, &count))
        say(s, "count %zu", count);
    say(s, "shape %d", s->api->TensorTypeAndShape_HasShape(info));
    s->api->ReleaseTensorTypeAndShapeInfo(info);
}

static void strings(side *s, const row *r)
{
    int64_t dims[] = {3};
    const char *texts[] = {r->a, "two", "\xc3\xa4\xe2\x82\xac"};
    OrtValue *value = NULL;
    size_t length = 0, offsets[3] = {9, 9, 9};
    char buffer[64] = "", *room = NULL;
    void *raw = NULL;
    GOOD(s, CreateTensorAsOrtValue, s->allocator, dims, 1, 8, &value);
    GOOD(s, FillStringTensor, value, texts, (size_t)r->i);
    GOOD(s, FillStringTensorElement, value, "one more", 1);
    GOOD(s, FillStringTensorElement, value, "none", 3);
    GOOD(s, GetStringTensorDataLength, value, &length);
    say(s, "%zu bytes", length);
    if (GOOD(s, GetStringTensorContent, value, buffer, length, offsets, 3))
        say(s, "'%.*s' %zu %zu %zu", (int)length, buffer, offsets[0], offsets[1], offsets[2]);
    GOOD(s, GetStringTensorContent, value, buffer, 2, offsets, 3);
    GOOD(s, GetStringTensorContent, value, buffer, length, offsets, 2);
    GOOD(s, GetStringTensorElementLength, value, 3, &length);
    GOOD(s, GetStringTensorElement, value, 1, 1, buffer);
    if (GOOD(s, GetResizedStringTensorElementBuffer, value, 0, 3, &room))
        memcpy(room, "xyz", 3);
    say_value(s, value);
    if (r->k)
        GOOD(s, GetTensorSizeInBytes, value, &length);
    (void)raw;
    s->api->ReleaseValue(value);
}

static OrtValue *make_strings(side *s, const char *const *texts, size_t count)
{
    int64_t dims[] = {(int64_t)count};
    OrtValue *value = NULL;
    GOOD(s, CreateTensorAsOrtValue, s->allocator, dims, 1, 8, &value);
    GOOD(s, FillStringTensor, value, texts, count);
    return value;
}

static void sequence(side *s, const row *r)
{
    int64_t a[] = {2}, b[] = {1, 3};
    const OrtValue *items[] = {floats(s, data, 1, a), floats(s, data + 2, 2, b), NULL};
    OrtValue *value = NULL, *item = NULL;
    OrtTypeInfo *type = NULL;
    if (GOOD(s, CreateValue, items, (size_t)r->i, (int)r->k, &value)) {
        say_value(s, value);
        GOOD(s, GetValue, value, 5, s->allocator, &item);
        GOOD(s, GetTypeInfo, value, &type);
        s->api->ReleaseTypeInfo(type);
    }
    s->api->ReleaseValue(value);
    s->api->ReleaseValue((OrtValue *)items[0]);
    s->api->ReleaseValue((OrtValue *)items[1]);
}

static void map(side *s, const row *r)
{
    static const char *const names[] = {"b", "a"};
    static int64_t numbers[] = {7, 3};
    int64_t dims[] = {2};
    OrtMemoryInfo *m = NULL;
    OrtValue *keys = NULL, *value = NULL, *item = NULL;
    GOOD(s, CreateCpuMemoryInfo, 1, 0, &m);
    if (r->i)
        GOOD(s, CreateTensorWithDataAsOrtValue, m, numbers, sizeof numbers, dims, 1, 7, &keys);
    else
        keys = make_strings(s, names, 2);
    const OrtValue *parts[] = {keys, floats(s, data, 1, dims)};
    if (GOOD(s, CreateValue, parts, 2, ABI_MAP, &value)) {
        size_t count = 0;
        GOOD(s, GetValueCount, value, &count);
        say(s, "%zu parts", count);
        GOOD(s, GetValue, value, 2, s->allocator, &item);
    }
    s->api->ReleaseValue(value);
    s->api->ReleaseValue(keys);
    s->api->ReleaseValue((OrtValue *)parts[1]);
    s->api->ReleaseMemoryInfo(m);
}

static void say_part(side *s, OrtTensorTypeAndShapeInfo *info)
{
    size_t rank = 0;
    int64_t dims[8];
    int type = -1;
    GOOD(s, GetTensorElementType, info, &type);
    GOOD(s, GetDimensionsCount, info, &rank);
    GOOD(s, GetDimensions, info, dims, rank);
    say(s, "type %d rank %zu", type, rank);
    for (size_t i = 0; i < rank; i++)
        say(s, "  %lld", (long long)dims[i]);
    s->api->ReleaseTensorTypeAndShapeInfo(info);
}

/* i: 1 COO, 2 CSR, 3 blocks; k: indices of COO */
static void sparse(side *s, const row *r)
{
    static int64_t dims[] = {3, 4}, count[] = {3}, block_dims[] = {2, 2, 1}, odd_dims[] = {1, 2, 2},
                   block_at[] = {2, 1};
    static int64_t linear[] = {0, 5, 11, 12}, pairs_[] = {0, 1, 1, 2, 2, 3}, inner[] = {0, 1, 3},
                   outer[] = {0, 1, 2, 3};
    static int32_t blocks[] = {0, 1};
    OrtMemoryInfo *m = NULL;
    OrtValue *value = NULL;
    OrtTensorTypeAndShapeInfo *info = NULL;
    const void *read = NULL;
    int format = -1, is = -1, kind = -1;
    size_t n = 0;
    GOOD(s, CreateCpuMemoryInfo, 1, 0, &m);
    GOOD(s, CreateSparseTensorAsOrtValue, s->allocator, dims, 2, 1, &value);
    if (r->i == 1)
        GOOD(s, FillSparseTensorCoo, value, m, count, 1, data, r->k == 6 ? pairs_ : linear,
             (size_t)r->k);
    if (r->i == 2)
        GOOD(s, FillSparseTensorCsr, value, m, count, 1, data, inner, 3, outer, (size_t)r->k);
    if (r->i == 3)
        GOOD(s, FillSparseTensorBlockSparse, value, m, r->k ? odd_dims : block_dims, 3, data,
             block_at, 2, blocks);
    GOOD(s, IsSparseTensor, value, &is);
    GOOD(s, GetValueType, value, &kind);
    GOOD(s, GetSparseTensorFormat, value, &format);
    say(s, "sparse %d kind %d format %d", is, kind, format);
    if (format > 0 && GOOD(s, GetSparseTensorValuesTypeAndShape, value, &info))
        say_part(s, info);
    if (format > 0 && GOOD(s, GetSparseTensorValues, value, &read))
        say(s, "first %g", (double)*(const float *)read);
    int which = r->i == 1 ? 0 : r->i == 2 ? 2 : 3;
    if (format > 0 && GOOD(s, GetSparseTensorIndicesTypeShape, value, which, &info))
        say_part(s, info);
    if (format > 0 && GOOD(s, GetSparseTensorIndices, value, which, &n, &read))
        say(s, "%zu indices", n);
    s->api->ReleaseValue(value);
    s->api->ReleaseMemoryInfo(m);
}

static const row values[] = {
    {"tensor: float", new_tensor, .i = 1, .k = 3},
    {"tensor: uint8", new_tensor, .i = 2, .k = 3},
    {"tensor: int8", new_tensor, .i = 3, .k = 3},
    {"tensor: uint16", new_tensor, .i = 4, .k = 3},
    {"tensor: int16", new_tensor, .i = 5, .k = 3},
    {"tensor: int32", new_tensor, .i = 6, .k = 3},
    {"tensor: int64", new_tensor, .i = 7, .k = 3},
    {"tensor: string", new_tensor, .i = 8, .k = 3},
    {"tensor: bool", new_tensor, .i = 9, .k = 3},
    {"tensor: float16", new_tensor, .i = 10, .k = 3},
    {"tensor: double", new_tensor, .i = 11, .k = 3},
    {"tensor: uint32", new_tensor, .i = 12, .k = 3},
    {"tensor: uint64", new_tensor, .i = 13, .k = 3},
    {"tensor: bfloat16", new_tensor, .i = 16, .k = 3},
    {"tensor: float8e4m3fn", new_tensor, .i = 17, .k = 3},
    {"tensor: float8e4m3fnuz", new_tensor, .i = 18, .k = 3},
    {"tensor: float8e5m2", new_tensor, .i = 19, .k = 3},
    {"tensor: float8e5m2fnuz", new_tensor, .i = 20, .k = 3},
    {"tensor: uint4", new_tensor, .i = 21, .k = 3},
    {"tensor: int4", new_tensor, .i = 22, .k = 3},
    {"tensor: float4e2m1", new_tensor, .i = 23, .k = 3},
    {"tensor: uint2", new_tensor, .i = 24, .k = 3},
    {"tensor: int2", new_tensor, .i = 25, .k = 3},
    {"tensor: float8e8m0", new_tensor, .i = 26, .k = 3},
    {"tensor: complex64", new_tensor, .i = 14, .k = 3},
    {"tensor: undefined", new_tensor, .i = 0, .k = 3},
    {"tensor: type 77", new_tensor, .i = 77, .k = 3},
    {"tensor: empty", new_tensor, .i = 1, .k = 0},
    {"tensor: empty strings", new_tensor, .i = 8},
    {"tensor: negative size", new_tensor, .i = 1, .k = -1},
    {"foreign memory", on_memory, .i = 24, .k = 1},
    {"foreign memory: more", on_memory, .i = 30},
    {"foreign memory: too little", on_memory, .i = 20, .texts = true},
    {"foreign memory: place beyond", on_memory, .i = 24, .k = 2, .texts = true},
    {"foreign memory: place below", on_memory, .i = 24, .k = -1, .texts = true},
    {"shape info", shapes, .i = 2, .k = 5},
    {"shape info: symbolic", shapes, .i = -1, .k = 5},
    {"shape info: empty", shapes, .i = 0, .k = 5},
    {"strings", strings, "one", .i = 3, .texts = true},
    {"strings: an empty one", strings, "", .i = 3, .texts = true},
    {"strings: too few", strings, "one", .i = 2, .texts = true},
    {"sequence", sequence, .i = 2, .k = ABI_SEQUENCE},
    {"sequence: of one", sequence, .i = 1, .k = ABI_SEQUENCE},
    {"sequence: of none", sequence, .i = 0, .k = ABI_SEQUENCE, .texts = true},
    {"sequence: as a map of one", sequence, .i = 1, .k = ABI_MAP, .texts = true},
    {"sequence: as a tensor", sequence, .i = 1, .k = ABI_TENSOR, .texts = true},
    {"map: strings", map, .i = 0},
    {"map: int64", map, .i = 1},
    {"sparse: COO", sparse, .i = 1, .k = 3},
    {"sparse: COO, pairs", sparse, .i = 1, .k = 6},
    {"sparse: COO, a wrong number", sparse, .i = 1, .k = 4, .texts = true},
    {"sparse: CSR", sparse, .i = 2, .k = 4},
    {"sparse: CSR, a wrong number", sparse, .i = 2, .k = 3, .texts = true},
    {"sparse: blocks", sparse, .i = 3},
    {"sparse: blocks, wrong values", sparse, .i = 3, .k = 1},
    {"sparse: nothing yet", sparse, .i = 0, .texts = true},
};

/* ----------------------------------------------------------------------------------- sessions */

static void describe(side *s, const row *r)
{
    OrtSession *session = open_model(s, r->a, NULL);
    if (session)
        say_session(s, session);
    s->api->ReleaseSession(session);
}

static void from_array(side *s, const row *r)
{
    FILE *file = fopen(model_path(r->a), "rb");
    static char bytes[1 << 16];
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    OrtSessionOptions *o = NULL;
    OrtSession *session = NULL;
    if (file)
        fclose(file);
    GOOD(s, CreateSessionOptions, &o);
    GOOD(s, SetSessionLogSeverityLevel, o, 4);
    GOOD(s, CreateSessionFromArray, s->env, bytes, r->i ? (size_t)r->i : size, o, &session);
    memset(bytes, 0, sizeof bytes);
    if (session)
        say_session(s, session);
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(o);
}

static void free_dims(side *s, const row *r)
{
    OrtSessionOptions *o = NULL;
    GOOD(s, CreateSessionOptions, &o);
    GOOD(s, SetSessionLogSeverityLevel, o, 4);
    if (r->k)
        GOOD(s, AddFreeDimensionOverride, o, r->b, r->i);
    else
        GOOD(s, AddFreeDimensionOverrideByName, o, r->b, r->i);
    OrtSession *session = open_model(s, r->a, o);
    if (session)
        say_session(s, session);
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(o);
}

static void initializer(side *s, const row *r)
{
    OrtSessionOptions *o = NULL;
    int64_t dims[] = {r->i};
    const char *in = "x", *out = "y";
    OrtValue *value = floats(s, data, 1, dims), *y = NULL;
    int64_t in_dims[] = {2, 3};
    const OrtValue *x = floats(s, data, 2, in_dims);
    GOOD(s, CreateSessionOptions, &o);
    GOOD(s, SetSessionLogSeverityLevel, o, 4);
    GOOD(s, AddInitializer, o, r->b, value);
    GOOD(s, AddInitializer, o, r->b, value);
    OrtSession *session = open_model(s, r->a, o);
    if (session && GOOD(s, Run, session, NULL, &in, &x, 1, &out, 1, &y))
        say_value(s, y);
    s->api->ReleaseValue(y);
    s->api->ReleaseValue(value);
    s->api->ReleaseValue((OrtValue *)x);
    s->api->ReleaseSession(session);
    s->api->ReleaseSessionOptions(o);
}

static void cancelled_load(side *s, const row *r)
{
    OrtSessionOptions *o = NULL;
    GOOD(s, CreateSessionOptions, &o);
    GOOD(s, SetSessionLogSeverityLevel, o, 4);
    GOOD(s, SessionOptionsSetLoadCancellationFlag, o, true);
    s->api->ReleaseSession(open_model(s, r->a, o));
    GOOD(s, SessionOptionsSetLoadCancellationFlag, o, false);
    s->api->ReleaseSession(open_model(s, r->a, o));
    s->api->ReleaseSessionOptions(o);
}

static const row sessions[] = {
    {"session: add", describe, "add"},
    {"session: metadata", describe, "metadata"},
    {"session: defaults", describe, "defaults"},
    {"session: strings", describe, "strings"},
    {"session: split", describe, "split",
     .known = "the shape of the items isn't declared, and inferred here alone"},
    {"session: zipmap", describe, "zipmap"},
    {"session: optional", describe, "optional"},
    {"session: scalar", describe, "scalar"},
    {"session: unknown rank", describe, "rankless"},
    {"session: types", describe, "types"},
    {"session: denoted", describe, "denoted"},
    {"session: no file", describe, "none", .texts = true},
    {"session: not a model", describe, "garbage"},
    {"session: empty file", describe, "empty"},
    {"session: invalid graph", describe, "invalid",
     .known = "there a name that nothing computes is an argument, here the graph is invalid"},
    {"session: unknown operator", describe, "unknown_op"},
    {"array: add", from_array, "add"},
    {"array: metadata", from_array, "metadata"},
    {"array: cut short", from_array, "metadata", .i = 40},
    {"array: garbage", from_array, "garbage"},
    {"dims: by name", free_dims, "add", "n", .i = 4},
    {"dims: no such name", free_dims, "add", "z", .i = 4},
    {"dims: by denotation", free_dims, "denoted", "DATA_BATCH", .i = 5, .k = 1},
    {"dims: no such denotation", free_dims, "denoted", "NONE", .i = 5, .k = 1},
    {"initializer", initializer, "weights", "w", .i = 3},
    {"initializer: another shape", initializer, "weights", "w", .i = 4,
     .known = "there it fails in the run, here when the session is made"},
    {"initializer: no such name", initializer, "weights", "none", .i = 3},
    {"cancelled while loading", cancelled_load, "add"},
};

/* --------------------------------------------------------------------------------------- runs */

/* Feeds `b` (default x and w) of [i, k] floats. */
static void run(side *s, const row *r)
{
    OrtSession *session = open_model(s, r->a, NULL);
    const char *in = r->b ? r->b : "x", *out = "y";
    int64_t dims[] = {r->i, r->k};
    const OrtValue *x = floats(s, data, r->k ? 2 : 1, dims);
    OrtValue *y = NULL;
    if (session && GOOD(s, Run, session, NULL, &in, &x, 1, &out, 1, &y))
        say_value(s, y);
    s->api->ReleaseValue(y);
    s->api->ReleaseValue((OrtValue *)x);
    s->api->ReleaseSession(session);
}

static void run_nothing(side *s, const row *r)
{
    OrtSession *session = open_model(s, r->a, NULL);
    const char *out = r->b;
    OrtValue *y = NULL;
    GOOD(s, Run, session, NULL, NULL, NULL, 0, &out, (size_t)r->i, &y);
    s->api->ReleaseValue(y);
    s->api->ReleaseSession(session);
}

static void run_type(side *s, const row *r)
{
    OrtSession *session = open_model(s, r->a, NULL);
    const char *in = "x", *out = "y";
    int64_t dims[] = {2, 3};
    OrtValue *x = NULL, *y = NULL;
    GOOD(s, CreateTensorAsOrtValue, s->allocator, dims, 2, (int)r->i, &x);
    const OrtValue *feed = x;
    GOOD(s, Run, session, NULL, &in, &feed, 1, &out, 1, &y);
    s->api->ReleaseValue(y);
    s->api->ReleaseValue(x);
    s->api->ReleaseSession(session);
}

/* Some of several outputs, in an order of the client's: letters of `b`. */
static void run_some(side *s, const row *r)
{
    OrtSession *session = open_model(s, "several", NULL);
    const char *in = "x", *names[8];
    char letters[8][2];
    OrtValue *outputs[8] = {0};
    int64_t dims[] = {2, 2};
    const OrtValue *x = floats(s, data, 2, dims);
    size_t count = strlen(r->b);
    for (size_t i = 0; i < count; i++) {
        letters[i][0] = r->b[i];
        letters[i][1] = 0;
        names[i] = letters[i];
    }
    if (GOOD(s, Run, session, NULL, &in, &x, 1, names, count, outputs))
        for (size_t i = 0; i < count; i++)
            say_value(s, outputs[i]);
    for (size_t i = 0; i < count; i++)
        s->api->ReleaseValue(outputs[i]);
    s->api->ReleaseValue((OrtValue *)x);
    s->api->ReleaseSession(session);
}

static void run_in_place(side *s, const row *r)
{
    OrtSession *session = open_model(s, "add", NULL);
    const char *in = "x", *out = "y";
    int64_t dims[] = {2, 3}, out_dims[] = {r->i, r->k};
    float own[64] = {0};
    const OrtValue *x = floats(s, data, 2, dims);
    OrtValue *y = floats(s, own, 2, out_dims), *given = y;
    if (GOOD(s, Run, session, NULL, &in, &x, 1, &out, 1, &y))
        say(s, "same %d, %g", y == given, (double)own[0]);
    s->api->ReleaseValue(given);
    s->api->ReleaseValue((OrtValue *)x);
    s->api->ReleaseSession(session);
}

static void run_strings(side *s, const row *r)
{
    static const char *const texts[] = {"a", "", "\xc3\xa4"};
    OrtSession *session = open_model(s, "strings", NULL);
    const char *in = "x", *out = "y";
    OrtValue *x = make_strings(s, texts, 3), *y = NULL;
    const OrtValue *feed = x;
    if (GOOD(s, Run, session, NULL, &in, &feed, 1, &out, 1, &y))
        say_value(s, y);
    s->api->ReleaseValue(y);
    s->api->ReleaseValue(x);
    s->api->ReleaseSession(session);
}

static void terminated(side *s, const row *r)
{
    OrtSession *session = open_model(s, "add", NULL);
    const char *in = "x", *out = "y";
    int64_t dims[] = {2, 3};
    const OrtValue *x = floats(s, data, 2, dims);
    OrtValue *y = NULL;
    OrtRunOptions *o = NULL;
    GOOD(s, CreateRunOptions, &o);
    GOOD(s, RunOptionsSetTerminate, o);
    GOOD(s, Run, session, o, &in, &x, 1, &out, 1, &y);
    GOOD(s, RunOptionsUnsetTerminate, o);
    if (GOOD(s, Run, session, o, &in, &x, 1, &out, 1, &y))
        say_value(s, y);
    s->api->ReleaseRunOptions(o);
    s->api->ReleaseValue(y);
    s->api->ReleaseValue((OrtValue *)x);
    s->api->ReleaseSession(session);
}

static void say_bound(side *s, OrtIoBinding *binding)
{
    char *names = NULL;
    size_t *lengths = NULL, count = 0;
    OrtValue **bound = NULL;
    GOOD(s, GetBoundOutputNames, binding, s->allocator, &names, &lengths, &count);
    say(s, "%zu bound", count);
    if (count) {
        say(s, "'%.*s'", (int)lengths[0], names);
        s->api->AllocatorFree(s->allocator, names);
        s->api->AllocatorFree(s->allocator, lengths);
    }
    if (GOOD(s, GetBoundOutputValues, binding, s->allocator, &bound, &count) && count) {
        for (size_t i = 0; i < count; i++) {
            say_value(s, bound[i]);
            s->api->ReleaseValue(bound[i]);
        }
        s->api->AllocatorFree(s->allocator, bound);
    }
}

/* i: outputs bound to 0 a value, 1 the device */
static void bound(side *s, const row *r)
{
    OrtSession *session = open_model(s, "add", NULL);
    OrtIoBinding *binding = NULL;
    OrtMemoryInfo *m = NULL;
    int64_t dims[] = {2, 3};
    float own[6] = {0};
    OrtValue *x = floats(s, data, 2, dims), *y = floats(s, own, 2, dims);
    GOOD(s, CreateCpuMemoryInfo, 1, 0, &m);
    GOOD(s, CreateIoBinding, session, &binding);
    GOOD(s, BindInput, binding, r->a, x);
    if (r->i)
        GOOD(s, BindOutputToDevice, binding, r->b, m);
    else
        GOOD(s, BindOutput, binding, r->b, y);
    GOOD(s, SynchronizeBoundInputs, binding);
    if (GOOD(s, RunWithBinding, session, NULL, binding) &&
        GOOD(s, RunWithBinding, session, NULL, binding))
        say_bound(s, binding);
    GOOD(s, SynchronizeBoundOutputs, binding);
    say(s, "own %g", (double)own[0]);
    s->api->ClearBoundOutputs(binding);
    say_bound(s, binding);
    s->api->ClearBoundInputs(binding);
    s->api->ReleaseIoBinding(binding);
    s->api->ReleaseValue(x);
    s->api->ReleaseValue(y);
    s->api->ReleaseMemoryInfo(m);
    s->api->ReleaseSession(session);
}

static void defaults(side *s, const row *r)
{
    OrtSession *session = open_model(s, "defaults", NULL);
    const char *in[] = {"x", "b"}, *out = "y";
    int64_t dims[] = {2, 3}, b_dims[] = {3};
    const OrtValue *feeds[] = {floats(s, data, 2, dims), floats(s, data + 4, 1, b_dims)};
    OrtValue *y = NULL;
    if (GOOD(s, Run, session, NULL, in, feeds, (size_t)r->i, &out, 1, &y))
        say_value(s, y);
    s->api->ReleaseValue(y);
    s->api->ReleaseValue((OrtValue *)feeds[0]);
    s->api->ReleaseValue((OrtValue *)feeds[1]);
    s->api->ReleaseSession(session);
}

static const row runs[] = {
    {"run: add", run, "add", .i = 2, .k = 3},
    {"run: one row", run, "add", .i = 1, .k = 3},
    {"run: no rows", run, "add", .i = 0, .k = 3},
    {"run: wrong size", run, "add", .i = 2, .k = 4, .texts = true},
    {"run: wrong rank", run, "add", .i = 3, .texts = true},
    {"run: wrong name", run, "add", "nonsense", .i = 2, .k = 3, .texts = true},
    {"run: two wrong sizes", run, "fixed", .i = 3, .k = 4, .texts = true},
    {"run: fixed", run, "fixed", .i = 2, .k = 3},
    {"run: nothing fed", run_nothing, "add", "y", .i = 1},
    {"run: no output asked", run_nothing, "add", "y", .i = 0, .texts = true},
    {"run: wrong output", run_nothing, "constant", "nonsense", .i = 1, .texts = true},
    {"run: empty output name", run_nothing, "constant", "", .i = 1, .texts = true},
    {"run: no inputs at all", run_nothing, "constant", "y", .i = 1},
    {"run: int64", run_type, "add", .i = 7, .texts = true},
    {"run: double", run_type, "add", .i = 11, .texts = true},
    {"run: strings for floats", run_type, "add", .i = 8, .texts = true},
    {"run: float16", run_type, "add", .i = 10, .texts = true},
    {"run: uint8", run_type, "add", .i = 2, .texts = true},
    {"run: bool", run_type, "add", .i = 9, .texts = true},
    {"run: scalar from [1]", run, "scalar", .i = 1,
     .known = "there the result keeps the shape [1], here it is a scalar as the model says"},
    {"run: scalar from [2]", run, "scalar", .i = 2,
     .known = "there any shape passes for a scalar, here any of one element"},
    {"run: split", run, "split", .i = 4, .k = 2},
    {"run: zipmap", run, "zipmap", .i = 2, .k = 3},
    {"run: optional", run, "optional", .i = 2},
    {"run: rankless", run, "rankless", .i = 2, .k = 3},
    {"run: rankless vector", run, "rankless", .i = 5},
    {"run: strings", run_strings, "strings"},
    {"run: all outputs", run_some, .b = "abc"},
    {"run: one output", run_some, .b = "b"},
    {"run: turned around", run_some, .b = "cba"},
    {"run: two outputs", run_some, .b = "ac"},
    {"run: in place", run_in_place, .i = 2, .k = 3},
    {"run: in place, wrong size", run_in_place, .i = 2, .k = 4, .texts = true},
    {"run: terminated", terminated, .texts = true},
    {"run: default kept", defaults, .i = 1},
    {"run: default given", defaults, .i = 2},
    {"run: defaults alone", defaults, .i = 0},
    {"binding: value", bound, "x", "y", .i = 0},
    {"binding: device", bound, "x", "y", .i = 1},
    {"binding: wrong input", bound, "nonsense", "y", .i = 1},
    {"binding: wrong output", bound, "x", "nonsense", .i = 1, .texts = true},
};

const table tables[] = {TABLE(environments), TABLE(options),  TABLE(memory),
                        TABLE(values),       TABLE(sessions), TABLE(runs)};
const size_t table_count = sizeof tables / sizeof *tables;
