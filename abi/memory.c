/* memory.c - allocators and what they say of their memory.
 *
 * All memory is that of the processor. The default allocator gives blocks that begin where a cache
 * line does. What a client allocates through one function and frees through another is the same
 * allocator's, so that it may also mix them with the members of OrtAllocator. Allocators that a
 * client registers for the processor are accepted and not called: the library plans its memory.
 */
#include "abi.h"

#include <stdlib.h>
#include <string.h>

const OrtMemoryInfo abi_cpu_memory = {.name = "Cpu", .constant = true};

void *abi_grow(void *list, size_t count, size_t element)
{
    if (count && (count & (count - 1))) /* it was doubled at each power of two */
        return list;
    size_t room = count ? 2 * count : 1;
    return room > SIZE_MAX / element ? NULL : realloc(list, room * element);
}

OrtStatus *abi_keep_text(char **place, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        return abi_no_memory();
    free(*place);
    *place = copy;
    return NULL;
}

/* ---------------------------------------------------------------------------------- allocators */

static void *take(OrtAllocator *allocator, size_t bytes)
{
    if (!bytes || bytes > SIZE_MAX - ABI_ALIGNMENT)
        return NULL;
    return aligned_alloc(ABI_ALIGNMENT, (bytes + ABI_ALIGNMENT - 1) & ~(size_t)(ABI_ALIGNMENT - 1));
}

static void give_back(OrtAllocator *allocator, void *block) { free(block); }

static const OrtMemoryInfo *say(const OrtAllocator *allocator) { return &abi_cpu_memory; }

static OrtStatus *count_nothing(const OrtAllocator *allocator, OrtKeyValuePairs **out)
{
    abi_CreateKeyValuePairs(out);
    return *out ? NULL : abi_no_memory();
}

OrtAllocator abi_default_allocator = {
    .version = ABI_VERSION,
    .Alloc = take,
    .Free = give_back,
    .Info = say,
    .Reserve = take,
    .GetStats = count_nothing,
};

OrtStatus *abi_GetAllocatorWithDefaultOptions(OrtAllocator **out)
{
    *out = &abi_default_allocator;
    return NULL;
}

OrtStatus *abi_AllocatorAlloc(OrtAllocator *allocator, size_t bytes, void **out)
{
    ABI_CHECK(allocator, "allocator is NULL");
    *out = allocator->Alloc(allocator, bytes);
    return *out || !bytes ? NULL : abi_no_memory();
}

OrtStatus *abi_AllocatorFree(OrtAllocator *allocator, void *block)
{
    ABI_CHECK(allocator, "allocator is NULL");
    allocator->Free(allocator, block);
    return NULL;
}

OrtStatus *abi_AllocatorGetInfo(const OrtAllocator *allocator, const OrtMemoryInfo **out)
{
    ABI_CHECK(allocator, "allocator is NULL");
    *out = allocator->Info(allocator);
    return NULL;
}

OrtStatus *abi_AllocatorGetStats(const OrtAllocator *allocator, OrtKeyValuePairs **out)
{
    ABI_CHECK(allocator, "allocator is NULL");
    if (allocator->version >= 23 && allocator->GetStats)
        return allocator->GetStats(allocator, out);
    return abi_fail(ABI_NOT_IMPLEMENTED, "The allocator keeps no statistics");
}

OrtStatus *abi_copy_out(OrtAllocator *allocator, const char *text, char **out)
{
    ABI_CHECK(allocator && out, "allocator is NULL");
    size_t size = strlen(text) + 1;
    *out = allocator->Alloc(allocator, size);
    if (!*out)
        return abi_no_memory();
    memcpy(*out, text, size);
    return NULL;
}

OrtStatus *abi_CreateAllocator(const OrtSession *session, const OrtMemoryInfo *memory,
                               OrtAllocator **out)
{
    ABI_CHECK(session && memory && out, "session or memory info is NULL");
    ABI_CHECK(!memory->device_type, "No requested allocator available");
    *out = &abi_default_allocator;
    return NULL;
}

void abi_ReleaseAllocator(OrtAllocator *allocator) { /* The only one there is stays. */ }

static OrtStatus *check_registered(const OrtEnv *env, const OrtMemoryInfo *memory)
{
    ABI_CHECK(env, "Env is null");
    ABI_CHECK(memory, "OrtMemoryInfo is null");
    ABI_CHECK(!memory->device_type, "Only CPU devices are supported. Please call "
                                    "CreateAndRegisterAllocatorV2() for other device.");
    return NULL;
}

OrtStatus *abi_CreateAndRegisterAllocator(OrtEnv *env, const OrtMemoryInfo *memory,
                                          const OrtArenaCfg *config)
{
    return check_registered(env, memory);
}

OrtStatus *abi_CreateAndRegisterAllocatorV2(OrtEnv *env, const char *provider,
                                            const OrtMemoryInfo *memory, const OrtArenaCfg *config,
                                            const char *const *keys, const char *const *values,
                                            size_t count)
{
    ABI_CHECK(provider && !strcmp(provider, "CPUExecutionProvider"),
              "%s is not implemented in CreateAndRegisterAllocatorV2()", provider ? provider : "");
    return check_registered(env, memory);
}

OrtStatus *abi_RegisterAllocator(OrtEnv *env, OrtAllocator *allocator)
{
    ABI_CHECK(env, "Env is null");
    ABI_CHECK(allocator, "Provided allocator is null");
    return check_registered(env, allocator->Info(allocator));
}

OrtStatus *abi_UnregisterAllocator(OrtEnv *env, const OrtMemoryInfo *memory)
{
    return check_registered(env, memory);
}

/* What an arena is told; ours is planned for each session and needs none of it. */
struct OrtArenaCfg {
    size_t max_bytes;
};

OrtStatus *abi_CreateArenaCfg(size_t max_bytes, int strategy, int chunk, int dead,
                              OrtArenaCfg **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return abi_no_memory();
    (*out)->max_bytes = max_bytes;
    return NULL;
}

OrtStatus *abi_CreateArenaCfgV2(const char *const *keys, const size_t *values, size_t count,
                                OrtArenaCfg **out)
{
    static const char *const known[] = {"max_mem",
                                        "arena_extend_strategy",
                                        "initial_chunk_size_bytes",
                                        "max_dead_bytes_per_chunk",
                                        "initial_growth_chunk_size_bytes",
                                        "max_power_of_two_extend_bytes"};
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < sizeof known / sizeof *known && strcmp(known[k], keys[i]))
            k++;
        ABI_CHECK(k < sizeof known / sizeof *known, "Invalid key found: %s", keys[i]);
        ABI_CHECK(k != 1 || values[i] <= 1 || values[i] == SIZE_MAX,
                  "Invalid configuration value was provided.");
    }
    return abi_CreateArenaCfg(0, 0, 0, 0, out);
}

void abi_ReleaseArenaCfg(OrtArenaCfg *config) { free(config); }

/* -------------------------------------------------------------------------------- memory infos */

OrtStatus *abi_CreateMemoryInfo_V2(const char *name, int device_type, uint32_t vendor,
                                   int32_t device, int device_mem_type, size_t alignment,
                                   int allocator_type, OrtMemoryInfo **out)
{
    ABI_CHECK(name && out, "name is NULL");
    OrtMemoryInfo *info = calloc(1, sizeof *info);
    if (!info)
        return abi_no_memory();
    snprintf(info->name, sizeof info->name, "%s", name);
    info->allocator_type = allocator_type;
    info->id = device;
    info->device_type = device_type;
    info->device_mem_type = device_mem_type;
    info->vendor = vendor;
    *out = info;
    return NULL;
}

/* The names of devices that the ABI knows, with their kind. */
static const struct {
    const char *name;
    int device_type;
    uint32_t vendor;
} devices[] = {
    {"Cpu", 0},         {"Cuda", 1, 0x10de},      {"CudaPinned", 1, 0x10de},
    {"Hip", 1, 0x1002}, {"HipPinned", 1, 0x1002}, {"DML", 1, 0x1414},
    {"OpenVINO_RT", 0}, {"OpenVINO_RT_NPU", 3},   {"WebGPU_Buffer", 1},
    {"WebGPU_Buf", 1},  {"WebNN_Tensor", 1},      {"WebNN_Ten", 1},
    {"Cann", 3},        {"CannPinned", 3},        {"QnnHtpShared", 3},
};

OrtStatus *abi_CreateMemoryInfo(const char *name, int type, int id, int mem_type,
                                OrtMemoryInfo **out)
{
    ABI_CHECK(name && out, "name is NULL");
    size_t at = 0;
    while (at < sizeof devices / sizeof *devices && strcmp(devices[at].name, name))
        at++;
    ABI_CHECK(at < sizeof devices / sizeof *devices, "Specified device is not supported. Try "
                                                     "CreateMemoryInfo_V2.");
    ABI_TRY(abi_CreateMemoryInfo_V2(name, devices[at].device_type, devices[at].vendor, at ? id : 0,
                                    0, 0, type, out));
    (*out)->mem_type = mem_type;
    return NULL;
}

OrtStatus *abi_CreateCpuMemoryInfo(int type, int mem_type, OrtMemoryInfo **out)
{
    return abi_CreateMemoryInfo("Cpu", type, 0, mem_type, out);
}

void abi_ReleaseMemoryInfo(OrtMemoryInfo *info)
{
    if (info && !info->constant)
        free(info);
}

OrtStatus *abi_CompareMemoryInfo(const OrtMemoryInfo *a, const OrtMemoryInfo *b, int *out)
{
    bool equal = !strcmp(a->name, b->name) && a->allocator_type == b->allocator_type &&
                 a->id == b->id && a->mem_type == b->mem_type && a->device_type == b->device_type;
    *out = equal ? 0 : -1;
    return NULL;
}

OrtStatus *abi_MemoryInfoGetName(const OrtMemoryInfo *info, const char **out)
{
    *out = info->name;
    return NULL;
}

OrtStatus *abi_MemoryInfoGetId(const OrtMemoryInfo *info, int *out)
{
    *out = info->id;
    return NULL;
}

OrtStatus *abi_MemoryInfoGetMemType(const OrtMemoryInfo *info, int *out)
{
    *out = info->mem_type;
    return NULL;
}

OrtStatus *abi_MemoryInfoGetType(const OrtMemoryInfo *info, int *out)
{
    *out = info->allocator_type;
    return NULL;
}

void abi_MemoryInfoGetDeviceType(const OrtMemoryInfo *info, int *out) { *out = info->device_type; }

int abi_MemoryInfoGetDeviceMemType(const OrtMemoryInfo *info) { return info->device_mem_type; }

uint32_t abi_MemoryInfoGetVendorId(const OrtMemoryInfo *info) { return info->vendor; }
