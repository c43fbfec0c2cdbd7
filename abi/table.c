/* table.c - the table of functions, made of slots.def, and the two functions that a client can
 * link to.
 *
 * A client calls by slot number and checks nothing, so what isn't provided answers here, in one
 * place: with a status that names the function, or with the nothing that its kind allows.
 */
#include "abi.h"

/* Functions of other types than their own are never called: a client knows each slot's type. */
#define SLOT(number, since, returns, name, parameters)
#define GAP(number, since, kind, name) GAP_##kind(name)
#define GAP_STATUS(name)                                                                           \
    static OrtStatus *gap_##name(void) { return abi_missing(#name); }
#define GAP_RELEASE(name)                                                                          \
    static void gap_##name(void) {}
#define GAP_VALUE(name)                                                                            \
    static void *gap_##name(void) { return NULL; }
#include "slots.def"
#undef SLOT
#undef GAP

struct OrtApi {
    abi_function *slots[428];
};

static const OrtApi table = {{
#define SLOT(number, since, returns, name, parameters) [number] = (abi_function *)abi_##name,
#define GAP(number, since, kind, name) [number] = (abi_function *)gap_##name,
#include "slots.def"
#undef SLOT
#undef GAP
}};

const OrtApi *abi_table(void) { return &table; }

static const OrtApi *get_api(uint32_t version)
{
    if (version >= 1 && version <= ABI_VERSION)
        return &table;
    fprintf(stderr,
            "The requested API version [%u] is not available, only API versions [1, %d] are "
            "supported in this build. Current ORT Version is: " ABI_VERSION_STRING "\n",
            version, ABI_VERSION);
    return NULL;
}

/* Bindings parse it, and compare it with the version of their header; GetBuildInfoString tells
 * whose library this is. */
static const char *get_version(void) { return ABI_VERSION_STRING; }

struct OrtApiBase {
    const OrtApi *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
};

/* Both are exported, without the prefix, at every symbol version that a release had. */
__attribute__((visibility("default"))) const OrtApiBase *abi_OrtGetApiBase(void);
__attribute__((visibility("default"))) OrtStatus *
abi_OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions *options, int use_arena);
#include "abi_symbols.inc" /* made by versions.sh */

const OrtApiBase *abi_OrtGetApiBase(void)
{
    static const OrtApiBase base = {get_api, get_version};
    return &base;
}

OrtStatus *abi_OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions *options,
                                                            int use_arena)
{
    return options ? NULL : abi_fail(ABI_INVALID_ARGUMENT, "options is NULL");
}
