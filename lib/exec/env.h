/* env.h - the environment: what all sessions of a process share. Immutable once made, but for
 * operator libraries and providers, which are added before models are loaded. */
#ifndef ORT_EXEC_ENV_H
#define ORT_EXEC_ENV_H

#include "base/log.h"
#include "base/pool.h"
#include "base/vec.h"
#include "kernel/kernel.h"
#include "op/op.h"
#include "ort_provider.h"
#include "provider/device.h"

struct ort_env {
    ort_registry *registry;
    ort_pool *pool;
    ort_log log;
    const ort_kernels *k;
    ort_kernels strict; /* with --math strict, where the tier's sums aren't those of floats: k */
    ort_env_options options;
    ort_limits limits; /* of calls that load, check, rewrite or prepare a model */
    int threads;
    int spin_us;
    const ort_provider *const *providers; /* the table, ended by NULL */
    ort_provider **added; /* those of libraries, completed; NULL: none */
    const ort_provider **table; /* the built-in ones, then these */
    size_t added_count;
    ort_devices *devices; /* on which values lie */
    ORT_VEC(void *) libraries; /* handles of dlopen */
};

/* An environment like this one, with threads of its own: of a session that asks for another number.
 * It shares the registry, and goes first. */
ort_status ort_env_derive(const ort_env *env, int threads, const ort_threads *makers,
                          ort_env **derived, ort_error *err);
void ort_env_derived_free(ort_env *env);
/* provider_library.c */
void ort_env_forget_providers(ort_env *env);
/* ops_library.c; after the registry and the providers have gone. */
void ort_env_close_libraries(ort_env *env);

#endif
