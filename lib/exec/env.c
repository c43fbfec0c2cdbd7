/* env.c - the environment, the cancel token, and what the process knows of itself. */
#include "exec/env.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/cpu.h"
#include "base/options.h"
#include "base/strbuf.h"
#include "provider/provider.h"

#define MAX_THREADS 1024

int ort_isa_list(const char **names, int capacity)
{
    if ((!names && capacity > 0))
        return 0;
    int count = 0;
    const ort_kernel_tier *tier;
    for (int i = 0; (tier = ort_kernel_tier_at(i)); i++) {
        if (tier->has && !tier->has())
            continue;
        if (count < capacity)
            names[count] = tier->name;
        count++;
    }
    return count;
}

static ort_status unknown_isa(const char *isa, ort_error *err)
{
    const char *names[16];
    int count = ort_isa_list(names, 16);
    char list[256] = "";
    for (int i = 0; i < count && i < 16; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    return ort_error_set(err, ORT_ERROR_USAGE, "isa '%s' isn't available; this machine has: %s",
                         isa, list);
}

static ort_status make_pool(ort_env *env, const ort_threads *makers, ort_error *err)
{
    if (makers && (!makers->start || !makers->join))
        return ort_error_set(err, ORT_ERROR_USAGE, "own_threads: %s is NULL",
                             makers->start ? "join" : "start");
    env->pool = ort_pool_new_of(env->threads, env->options.pin, makers);
    if (env->pool)
        return ORT_OK;
    return makers ? ort_error_set(err, ORT_ERROR_RUN,
                                  "own_threads: start gave fewer than the %d threads asked for; "
                                  "give them, or ask for fewer",
                                  env->threads - 1)
                  : ort_error_memory(err, 0);
}

ort_status ort_env_new(const ort_env_options *options, ort_env **env, ort_error *err)
{
    if (!env)
        return ort_error_null(err, __func__);
    ort_status status;
    ort_env_options own = ORT_ENV_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ort_env *e = calloc(1, sizeof *e);
    *env = NULL;
    if (!e)
        return ort_error_memory(err, sizeof *e);
    e->options = *options;
    e->providers = ort_provider_table();
    e->limits.memory_bytes = e->options.max_memory_bytes;
    e->log = (ort_log){e->options.log, e->options.log_arg, e->options.log_level};
    e->spin_us = e->options.spin_us < 0 ? ORT_DEFAULT_SPIN_US : e->options.spin_us;
    e->threads = e->options.threads > 0 ? e->options.threads : ort_cpu_count_usable();
    if (e->threads > MAX_THREADS)
        e->threads = MAX_THREADS;
    e->k = ort_kernels_get(e->options.isa);
    if (!e->k) {
        status = unknown_isa(e->options.isa ? e->options.isa : "", err);
        goto fail;
    }
    e->options.isa = e->k->isa;
    if (e->options.math_strict) {
        e->strict = *e->k;
        e->strict.gemm.strassen = (ort_strassen_kernels){0};
        e->strict.gemm.crossed = (ort_crossed_kernels){0};
        e->strict.gemm.f32_tiles = NULL;
        e->strict.gemm.tile_multiply_adds = NULL;
        e->k = &e->strict;
    }
    ORT_TRY_GOTO(status, ort_registry_new(&e->registry, err), fail);
    if (e->options.limit_all && e->options.max_memory_bytes &&
        !(e->limits.whole = ort_account_new_whole(e->options.max_memory_bytes))) {
        status = ort_error_memory(err, 0);
        goto fail;
    }
    ORT_TRY_GOTO(status, make_pool(e, options->own_threads, err), fail);
    e->devices = ort_devices_new();
    if (!e->devices) {
        status = ort_error_memory(err, 0);
        goto fail;
    }
    *env = e;
    return ORT_OK;
fail:
    ort_env_free(e);
    return status;
}

void ort_env_free(ort_env *env)
{
    if (!env)
        return;
    if (env->pool)
        ort_pool_free(env->pool);
    ort_registry_free(env->registry);
    ort_devices_free(env->devices);
    ort_env_forget_providers(env);
    ort_env_close_libraries(env);
    ort_account_release(env->limits.whole);
    free(env);
}

void ort_env_limit_loading(ort_env *env, double timeout_s, const ort_cancel *cancel)
{
    if (!env)
        return;
    env->limits.timeout_s = timeout_s;
    env->limits.cancel = cancel;
}

ort_status ort_env_derive(const ort_env *env, int threads, const ort_threads *makers,
                          ort_env **derived, ort_error *err)
{
    assert(threads > 0);
    ort_env *e = malloc(sizeof *e);
    *derived = NULL;
    if (!e)
        return ort_error_memory(err, sizeof *e);
    *e = *env;
    e->threads = threads < MAX_THREADS ? threads : MAX_THREADS;
    ort_status status = make_pool(e, makers, err);
    if (status == ORT_OK)
        *derived = e;
    else
        free(e);
    return status;
}

void ort_env_derived_free(ort_env *env)
{
    if (!env)
        return;
    ort_pool_free(env->pool);
    free(env);
}

int ort_env_threads(const ort_env *env)
{
    if (!env)
        return 0;
    return env->threads;
}

const char *ort_env_isa(const ort_env *env)
{
    if (!env)
        return "";
    return env->k->isa;
}

/* ---- cancel */

ort_status ort_cancel_new(ort_cancel **cancel, ort_error *err)
{
    if (!cancel)
        return ort_error_null(err, __func__);
    *cancel = calloc(1, sizeof **cancel);
    return *cancel ? ORT_OK : ort_error_memory(err, sizeof **cancel);
}

void ort_cancel_set(ort_cancel *cancel)
{
    if (!cancel)
        return;
    atomic_store_explicit(&cancel->set, 1, memory_order_relaxed);
}

void ort_cancel_clear(ort_cancel *cancel)
{
    if (!cancel)
        return;
    atomic_store_explicit(&cancel->set, 0, memory_order_relaxed);
}

void ort_cancel_free(ort_cancel *cancel)
{
    free(cancel);
}

/* ---- the process */

/* VmHWM, not ru_maxrss: the latter survives exec and would count the shell that started us. */
size_t ort_peak_rss_bytes(void)
{
    char line[256];
    size_t kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %zu", &kilobytes) == 1)
            break;
    fclose(file);
    return kilobytes * 1024;
}

uint64_t ort_process_age_ns(void)
{
    char line[1024];
    unsigned long long start = 0;
    struct timespec now;
    long ticks = sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/self/stat", "re");
    if (!file)
        return 0;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = 0;
    /* The command name may hold blanks: count fields from the last ')'. Start time is field 22. */
    const char *p = strrchr(line, ')');
    for (int field = 2; p && field < 22; field++) {
        p = strchr(p + 1, ' ');
    }
    if (!p || sscanf(p, "%llu", &start) != 1 || ticks <= 0)
        return 0;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    uint64_t start_ns = (uint64_t)start * (1000000000u / (uint64_t)ticks);
    return now_ns > start_ns ? now_ns - start_ns : 0;
}
