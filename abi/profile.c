/* profile.c - profiles of sessions and of single runs: a trace of events in the form that viewers
 * of onnxruntime's profiles read, in a file named by prefix and date.
 *
 * A profile of the library records one run at a time, so that profiled runs of one session wait
 * for each other.
 */
#include "abi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct abi_profiler {
    pthread_mutex_t lock;
    ort_profile *profile;
    uint64_t start_ns;
    bool ended;
    char path[]; /* of the trace */
};

/* PREFIX_2026-11-28_07-58-59.json, of the local clock */
static void name_file(char *path, size_t size, const char *prefix)
{
    char stamp[32];
    struct tm day;
    time_t now = time(NULL);
    localtime_r(&now, &day);
    strftime(stamp, sizeof stamp, "%Y-%m-%d_%H-%M-%S", &day);
    snprintf(path, size, "%s_%s.json", prefix, stamp);
}

struct abi_profiler *abi_profiler_new(const ort_session *session, const char *prefix)
{
    size_t size = strlen(prefix) + 40;
    struct abi_profiler *profiler = calloc(1, sizeof *profiler + size);
    if (!profiler)
        return NULL;
    if (ort_profile_new(session, NULL, &profiler->profile, NULL) != ORT_OK) {
        free(profiler);
        return NULL;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    profiler->start_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    pthread_mutex_init(&profiler->lock, NULL);
    name_file(profiler->path, size, prefix);
    ort_profile_start(profiler->profile);
    return profiler;
}

static OrtStatus *write_trace(struct abi_profiler *profiler)
{
    ort_error err = ORT_ERROR_INIT;
    ort_out_file *file;
    if (ort_out_file_open(profiler->path, &file, &err) != ORT_OK)
        return abi_from_error(&err);
    if (ort_profile_trace(profiler->profile, ort_out_file_stream(file), &err) == ORT_OK)
        return ort_out_file_commit(file, false, &err) == ORT_OK ? NULL : abi_from_error(&err);
    ort_out_file_abort(file);
    return abi_from_error(&err);
}

OrtStatus *abi_profiler_free(struct abi_profiler *profiler)
{
    if (!profiler)
        return NULL;
    OrtStatus *status = profiler->ended ? NULL : write_trace(profiler);
    ort_profile_free(profiler->profile);
    pthread_mutex_destroy(&profiler->lock);
    free(profiler);
    return status;
}

ort_profile *abi_profiler_begin(struct abi_profiler *profiler)
{
    pthread_mutex_lock(&profiler->lock);
    if (!profiler->ended)
        return profiler->profile;
    pthread_mutex_unlock(&profiler->lock);
    return NULL;
}

void abi_profiler_end(struct abi_profiler *profiler) { pthread_mutex_unlock(&profiler->lock); }

OrtStatus *abi_SessionEndProfiling(OrtSession *session, OrtAllocator *allocator, char **out)
{
    struct abi_profiler *profiler = session->profiler;
    if (!profiler)
        return abi_copy_out(allocator, "", out);
    pthread_mutex_lock(&profiler->lock);
    OrtStatus *status = profiler->ended ? NULL : write_trace(profiler);
    profiler->ended = true;
    pthread_mutex_unlock(&profiler->lock);
    return status ? status : abi_copy_out(allocator, profiler->path, out);
}

OrtStatus *abi_SessionGetProfilingStartTimeNs(const OrtSession *session, uint64_t *out)
{
    *out = session->profiler ? session->profiler->start_ns : 0;
    return NULL;
}
