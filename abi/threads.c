/* threads.c - threads: how many an environment or a session has, and who makes them.
 *
 * A client that makes threads itself gives a function that starts one and one that waits for it;
 * they are called when the environment or session comes and goes. A session without numbers of its
 * own for which threads are made has as many as the environment.
 */
#include "abi.h"

#include <stdlib.h>
#include <string.h>

enum { AFFINITY_MOST = 2048 };

static void *start(void *arg, void (*work)(void *), void *work_arg)
{
    const abi_makers *makers = arg;
    return makers->create(makers->options, work, work_arg);
}

static void join(void *arg, void *thread)
{
    const abi_makers *makers = arg;
    makers->join(thread);
}

OrtStatus *abi_makers_new(const abi_makers *from, abi_makers **out)
{
    *out = NULL;
    if (!from->create)
        return NULL;
    if (!from->join)
        return abi_fail(ABI_FAIL, "custom join thread function not set");
    abi_makers *makers = malloc(sizeof *makers);
    if (!makers)
        return abi_no_memory();
    *makers = *from;
    makers->threads = (ort_threads){start, join, makers};
    *out = makers;
    return NULL;
}

/* ----------------------------------------------------------------- who makes them: the setters */

#define NO_SESSIONS "options is NULL"
#define NO_GLOBALS "Received null OrtThreadingOptions"

/* A function that keeps what it is given as `member`; `absent`: what it says without options. */
#define SETTER(function, of, absent, type, member, may_be_null)                                    \
    OrtStatus *abi_##function(of *options, type given)                                             \
    {                                                                                              \
        ABI_CHECK(options, absent);                                                                \
        ABI_CHECK(given || (may_be_null), "Received null " #type);                                 \
        options->makers.member = given;                                                            \
        return NULL;                                                                               \
    }
typedef void *OrtCustomThreadCreationOptions;

SETTER(SessionOptionsSetCustomCreateThreadFn, OrtSessionOptions, NO_SESSIONS,
       OrtCustomCreateThreadFn, create, true)
SETTER(SessionOptionsSetCustomThreadCreationOptions, OrtSessionOptions, NO_SESSIONS,
       OrtCustomThreadCreationOptions, options, true)
SETTER(SessionOptionsSetCustomJoinThreadFn, OrtSessionOptions, NO_SESSIONS,
       OrtCustomJoinThreadFn, join, true)
SETTER(SetGlobalCustomCreateThreadFn, OrtThreadingOptions, NO_GLOBALS,
       OrtCustomCreateThreadFn, create, false)
SETTER(SetGlobalCustomThreadCreationOptions, OrtThreadingOptions, NO_GLOBALS,
       OrtCustomThreadCreationOptions, options, true)
SETTER(SetGlobalCustomJoinThreadFn, OrtThreadingOptions, NO_GLOBALS,
       OrtCustomJoinThreadFn, join, false)

/* ----------------------------------------------------------------------------- of environments */

OrtStatus *abi_CreateThreadingOptions(OrtThreadingOptions **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? NULL : abi_no_memory();
}

OrtStatus *abi_SetGlobalIntraOpNumThreads(OrtThreadingOptions *options, int threads)
{
    ABI_CHECK(options, NO_GLOBALS);
    ABI_CHECK(threads >= 0, "intra_op_num_threads is less than 0");
    options->intra_threads = threads;
    return NULL;
}

/* Nodes run one after the other. */
OrtStatus *abi_SetGlobalInterOpNumThreads(OrtThreadingOptions *options, int threads)
{
    ABI_CHECK(options, NO_GLOBALS);
    return NULL;
}

OrtStatus *abi_SetGlobalSpinControl(OrtThreadingOptions *options, int spin)
{
    ABI_CHECK(options, NO_GLOBALS);
    ABI_CHECK(spin == 0 || spin == 1, "Received invalid value for allow_spinning. Valid values "
                                      "are 0 or 1");
    return NULL;
}

/* Denormals are zero anyway. */
OrtStatus *abi_SetGlobalDenormalAsZero(OrtThreadingOptions *options)
{
    ABI_CHECK(options, NO_GLOBALS);
    return NULL;
}

void abi_ReleaseThreadingOptions(OrtThreadingOptions *options)
{
    if (options)
        free(options->affinity);
    free(options);
}

OrtStatus *abi_SetGlobalIntraOpThreadAffinity(OrtThreadingOptions *options, const char *affinity)
{
    ABI_CHECK(options, NO_GLOBALS);
    ABI_CHECK(affinity, "Received null affinity_string");
    ABI_CHECK(*affinity && strlen(affinity) <= AFFINITY_MOST,
              "Size of affinity string must be between 1 and %d", AFFINITY_MOST);
    char *copy = strdup(affinity);
    if (!copy)
        return abi_no_memory();
    free(options->affinity);
    options->affinity = copy;
    return NULL;
}

/* Processors of each thread but the caller, between semicolons: numbers from 1 on, or ranges.
 * Threads settle where the processors are free, whatever it says; what it says must make sense. */
OrtStatus *abi_check_affinity(const OrtThreadingOptions *options)
{
    const char *text = options->affinity;
    int count = 1;
    if (!text)
        return NULL;
    for (const char *c = text; *c; c++) {
        count += *c == ';';
        if (!strchr("0123456789,-;", *c))
            return abi_fail(ABI_FAIL, "Failed to read an affinity: '%s' has '%c'", text, *c);
    }
    if (options->intra_threads && count != options->intra_threads - 1)
        return abi_fail(ABI_FAIL,
                        "Number of affinities does not equal to thread_pool_size minus one, "
                        "affinities: %d, thread_pool_size: %d",
                        count, options->intra_threads);
    return NULL;
}
