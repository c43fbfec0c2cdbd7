/* ops_library.c - operator libraries of an environment: their table goes to the registry
 * (op/custom_row.c checks it). They stay open until the environment is freed, since rows, states
 * and strings lie in them.
 */
#include <stdio.h>

#include "base/error.h"
#include "exec/env.h"
#include "exec/library.h"

#define ENTRY "ort_ops_entry"

static void announce(const ort_env *env, const ort_ops_library *library, const char *path)
{
    char text[600];
    snprintf(text, sizeof text, "operator library '%s'%s%s: %zu rows%s%s", library->name,
             library->version ? " " : "", library->version ? library->version : "",
             library->row_count, path ? " from " : "", path ? path : "");
    ort_log_write(&env->log, ORT_LOG_INFO, "%s", text);
}

ort_status ort_env_add_ops(ort_env *env, const ort_ops_library *library, ort_error *err)
{
    if (!env || !library)
        return ort_error_null(err, __func__);
    ORT_TRY(ort_registry_add(env->registry, library, err));
    announce(env, library, NULL);
    return ORT_OK;
}

ort_status ort_env_add_ops_library(ort_env *env, const char *path, ort_error *err)
{
    if (!env || !path)
        return ort_error_null(err, __func__);
    void *handle = NULL;
    const void *table = NULL;
    ORT_TRY(ort_library_open(path, ENTRY, "operator", &handle, &table, err));
    const ort_ops_library *library = table;
    ort_status status = ort_vec_reserve(&env->libraries, env->libraries.count + 1)
                            ? ort_registry_add(env->registry, library, err)
                            : ort_error_memory(err, sizeof handle);
    if (status != ORT_OK) {
        ort_library_close(handle);
        return ort_error_wrap(err, status, "%s", path);
    }
    env->libraries.data[env->libraries.count++] = handle;
    announce(env, library, path);
    return ORT_OK;
}

void ort_env_close_libraries(ort_env *env)
{
    while (env->libraries.count)
        ort_library_close(ort_vec_pop(&env->libraries));
    ort_vec_release(&env->libraries);
}
