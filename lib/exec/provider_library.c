/* provider_library.c - providers of an environment that aren't built in: libraries of them, opened
 * when a program names one, or found by the name of a provider in the folders of
 * ORT_PROVIDER_PATH. They stay open until the environment is freed.
 *
 * A row is copied, with all that its library is too old to know left empty: nobody else needs to
 * look at its size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "exec/env.h"
#include "exec/library.h"
#include "provider/provider.h"

#define ENTRY "ort_provider_entry"

/* ---- versions */

/* The members of the first version, up to `sync`: the least that a row has. */
#define LEAST_ROW (offsetof(ort_provider, sync) + sizeof(void *))
#define LEAST_LIBRARY (offsetof(ort_provider_library, providers) + sizeof(void *))

static ort_status check_library(const ort_provider_library *library, ort_error *err)
{
    if (library->abi < 1 || library->abi > ORT_PROVIDER_ABI)
        return ort_error_set(err, ORT_ERROR_USAGE, "its providers need version %u of the interface "
                             "(ort_provider.h); this libort has 1 to %d", library->abi,
                             ORT_PROVIDER_ABI);
    if (library->size < LEAST_LIBRARY || library->size > sizeof *library)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "its table has %u bytes, where version %u of the interface has %zu",
                             library->size, library->abi, sizeof *library);
    if (!library->name || !library->providers || !library->providers[0])
        return ort_error_set(err, ORT_ERROR_USAGE, "its table names no provider");
    return ORT_OK;
}

static ort_status check_row(const ort_provider *row, ort_error *err)
{
    if (row->size >= LEAST_ROW && row->size <= sizeof *row)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_USAGE, "a provider of it has %zu bytes, where this version "
                         "of the interface has %zu to %zu", row->size, LEAST_ROW, sizeof *row);
}

/* ---- the table */

static bool grow(ort_env *env, size_t more)
{
    size_t built_in = 0, count = env->added_count + more;
    while (ort_provider_at((int)built_in))
        built_in++;
    ort_provider **added = realloc(env->added, count * sizeof *added);
    if (!added)
        return false;
    env->added = added;
    const ort_provider **table = malloc((built_in + count + 1) * sizeof *table);
    if (!table)
        return false;
    memset(table, 0, (built_in + count + 1) * sizeof *table);
    for (size_t i = 0; i < built_in; i++)
        table[i] = ort_provider_at((int)i);
    for (size_t i = 0; i < env->added_count; i++)
        table[built_in + i] = env->added[i];
    free(env->table);
    env->table = table;
    env->providers = table;
    return true;
}

static ort_status add_row(ort_env *env, const ort_provider *row, ort_error *err)
{
    size_t at = 0;
    ORT_TRY(check_row(row, err));
    ort_provider *own = calloc(1, sizeof *own);
    if (!own)
        return ort_error_memory(err, sizeof *own);
    memcpy(own, row, row->size);
    own->size = sizeof *own;
    own->lower = NULL; /* passes are libort's own */
    while (env->table[at])
        at++;
    env->table[at] = own;
    env->added[env->added_count++] = own;
    return ORT_OK;
}

/* All rows or none. */
static ort_status add_rows(ort_env *env, const ort_provider_library *library, ort_error *err)
{
    size_t count = 0, before = env->added_count;
    ORT_TRY(check_library(library, err));
    while (library->providers[count])
        count++;
    if (!grow(env, count))
        return ort_error_memory(err, count * sizeof(ort_provider));
    ort_status status = ORT_OK;
    for (size_t i = 0; i < count && status == ORT_OK; i++)
        status = add_row(env, library->providers[i], err);
    if (status == ORT_OK)
        status = ort_provider_table_check(env->table, err);
    while (status != ORT_OK && env->added_count > before) {
        size_t at = 0;
        while (env->table[at + 1])
            at++;
        env->table[at] = NULL;
        free(env->added[--env->added_count]);
    }
    return status;
}

static void announce(const ort_env *env, const ort_provider_library *library, const char *path)
{
    ort_log_write(&env->log, ORT_LOG_INFO, "provider library '%s'%s%s: %s%s%s", library->name,
                  library->version ? " " : "", library->version ? library->version : "",
                  library->providers[0]->name, path ? " from " : "", path ? path : "");
}

ort_status ort_env_add_providers(ort_env *env, const ort_provider_library *library, ort_error *err)
{
    if (!env || !library)
        return ort_error_null(err, __func__);
    ORT_TRY(add_rows(env, library, err));
    announce(env, library, NULL);
    return ORT_OK;
}

ort_status ort_env_add_provider_library(ort_env *env, const char *path, ort_error *err)
{
    if (!env || !path)
        return ort_error_null(err, __func__);
    void *handle = NULL;
    const void *table = NULL;
    ORT_TRY(ort_library_open(path, ENTRY, "provider", &handle, &table, err));
    ort_status status = ort_vec_reserve(&env->libraries, env->libraries.count + 1)
                            ? add_rows(env, table, err)
                            : ort_error_memory(err, sizeof handle);
    if (status != ORT_OK) {
        ort_library_close(handle);
        return ort_error_wrap(err, status, "%s", path);
    }
    env->libraries.data[env->libraries.count++] = handle;
    announce(env, table, path);
    return ORT_OK;
}

/* ---- by name, in the folders of ORT_PROVIDER_PATH */

static bool has_provider(const ort_env *env, const char *name, size_t length)
{
    for (int i = 0; env->providers[i]; i++)
        if (strlen(env->providers[i]->name) == length &&
            !strncmp(env->providers[i]->name, name, length))
            return true;
    return false;
}

static ort_status find_one(ort_env *env, const char *name, size_t length, ort_error *err)
{
    const char *folders = getenv("ORT_PROVIDER_PATH");
    char path[4200];
    for (const char *at = folders ? folders : ""; *at;) {
        size_t size = strcspn(at, ":");
        int made = snprintf(path, sizeof path, "%.*s/ort-provider-%.*s.so", (int)size, at,
                            (int)length, name);
        at += size + (at[size] == ':');
        if (size && made > 0 && made < (int)sizeof path && access(path, F_OK) == 0)
            return ort_env_add_provider_library(env, path, err);
    }
    return ORT_OK; /* whoever uses the list says that there is none */
}

ort_status ort_env_find_providers(ort_env *env, const char *list, ort_error *err)
{
    if (!env)
        return ort_error_null(err, __func__);
    while (list && *list) {
        size_t length = strcspn(list, ",:"), all = strcspn(list, ",");
        if (length && !memchr(list, '/', length) && !has_provider(env, list, length))
            ORT_TRY(find_one(env, list, length, err));
        list += all + (list[all] == ',');
    }
    return ORT_OK;
}

void ort_env_forget_providers(ort_env *env)
{
    for (size_t i = 0; i < env->added_count; i++)
        free(env->added[i]);
    free(env->added);
    free(env->table);
    env->added_count = 0;
}
