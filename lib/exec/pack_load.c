/* pack_load.c - a session from the pack beside a model (packing.h). Whatever doesn't fit is a line
 * of the log; the session is then made from the model as if there were no pack. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "exec/packing.h"
#include "graph/hash.h"
#include "io/source.h"
#include "op/check/check.h"

/* ---- weights */

static uint64_t digest_graph(const ort_graph *graph, uint64_t digest)
{
    const ort_node *node;
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const ort_tensor *t = graph->values.data[graph->initializers.data[i]]->fact.value;
        const uint64_t pair[2] = {digest, t ? ort_hash_tensor(t) : 0};
        digest = ort_hash_bytes(pair, sizeof pair, 0);
    }
    ORT_EACH_NODE(graph, node)
    {
        for (int a = 0; a < node->attr_count; a++) {
            const ort_attr *attr = &node->attrs[a];
            size_t count = attr->type == ORT_ATTR_TENSOR    ? 1
                           : attr->type == ORT_ATTR_TENSORS ? attr->count
                                                            : 0;
            for (size_t i = 0; i < count; i++) {
                const uint64_t pair[2] = {digest,
                                          ort_hash_tensor(attr->t ? attr->t : &attr->tensors[i])};
                digest = ort_hash_bytes(pair, sizeof pair, 0);
            }
        }
        for (int b = 0; b < node->body_count; b++)
            digest = digest_graph(node->bodies[b], digest);
    }
    return digest;
}

uint64_t ort_pack_weights_digest(const ort_model *model)
{
    uint64_t digest = digest_graph(model->graph, ORT_PACK_FORMAT);
    return digest ? digest : 1;
}

/* ---- does it fit? */

bool ort_pack_options_fit(const ort_env *env, const ort_session_options *o)
{
    if (env->options.math_strict || env->options.math_fast || env->options.keep_denormals ||
        env->libraries.count)
        return false;
    return !o || ((o->level < 0 || o->level == 3) && !(o->disable && o->disable[0]) &&
                  !o->keep_all && !o->keep_computed && !(o->watched && o->watched[0]) &&
                  (!o->providers || !strcmp(o->providers, ort_provider_at(0)->name)));
}

/* A pack holds what computes the model's outputs. */
static ort_status refuse_other_values(const ort_graph *graph, const ort_session_options *o,
                                      ort_error *err)
{
    for (const char *const *name = o ? o->extra_outputs : NULL; name && *name; name++) {
        ort_id id = ort_graph_find_value(graph, *name);
        if (id == ORT_ID_NONE || !graph->values.data[id]->is_output)
            return ort_error_set(err, ORT_ERROR_USAGE, "'%s' is no output of the model",
                                 *name);
    }
    return ORT_OK;
}

ort_status ort_pack_stamp_wanted(const ort_env *env, const ort_source *source,
                                 const ort_pack_stamp *of, ort_pack_stamp *stamp, ort_error *err)
{
    struct stat info;
    int fd;
    memset(stamp, 0, sizeof *stamp);
    snprintf(stamp->library, sizeof stamp->library, "%s", ort_pack_library());
    snprintf(stamp->isa, sizeof stamp->isa, "%s", env->k->isa);
    ORT_TRY(ort_pack_stamp_of(source->bytes, source->count, stamp, err));
    if (!of->data_file[0] || strchr(of->data_file, '/') ||
        ort_reach_open(&source->reach, of->data_file, &fd, NULL) != ORT_OK)
        return ORT_OK;
    if (fstat(fd, &info) == 0) {
        memcpy(stamp->data_file, of->data_file, sizeof stamp->data_file);
        stamp->data_bytes = (uint64_t)info.st_size;
    }
    close(fd);
    return ORT_OK;
}

static ort_status refuse(const ort_pack_stamp *has, const ort_pack_stamp *wanted, ort_error *err)
{
    const char *what = ort_pack_stamp_differs(has, wanted);
    if (!what)
        return ORT_OK;
    if (strcmp(has->library, wanted->library))
        return ort_error_set(err, ORT_ERROR_MODEL, "made by library %s, this is %s", has->library,
                             wanted->library);
    if (strcmp(has->isa, wanted->isa))
        return ort_error_set(err, ORT_ERROR_MODEL, "made for kernel tier %s, this is %s", has->isa,
                             wanted->isa);
    return ort_error_set(err, ORT_ERROR_MODEL, "made for %s: this %s differs",
                         strcmp(what, "weights") ? "another model" : "other weights", what);
}

/* The name of the pack beside a model; false: there is none. */
static bool find_pack(const char *path, char name[PATH_MAX])
{
    return strcmp(path, "-") &&
           snprintf(name, PATH_MAX, "%s" ORT_PACK_SUFFIX, path) < PATH_MAX &&
           access(name, F_OK) == 0;
}

ort_status ort_pack_beside(const ort_env *env, const char *path, const ort_source *source,
                           ort_pack *pack, ort_error *err)
{
    char name[PATH_MAX];
    ort_pack_stamp wanted;
    int fd;
    *pack = (ort_pack){0};
    if (!find_pack(path, name))
        return ORT_OK;
    const char *slash = strrchr(name, '/');
    ORT_TRY(ort_reach_open(&source->reach, slash ? slash + 1 : name, &fd, err));
    ort_status status = ort_pack_open_fd(fd, name, pack, err);
    close(fd);
    if (status == ORT_OK)
        status = ort_pack_stamp_wanted(env, source, &pack->stamp, &wanted, err);
    if (status == ORT_OK)
        status = refuse(&pack->stamp, &wanted, err);
    if (status != ORT_OK)
        ort_pack_release(pack);
    return status;
}

/* ---- the session */

/* Pages [first, end) of the mapping are mapped at once: a fault each would be the first run's. */
static void populate_range(const ort_pack *pack, uint64_t first, uint64_t end)
{
#ifdef MADV_POPULATE_READ
    first = first / ORT_PACK_PAGE * ORT_PACK_PAGE;
    if (end > first)
        (void)!madvise((void *)(uintptr_t)(pack->blob->bytes + first), end - first,
                       MADV_POPULATE_READ);
#else
#endif
}

/* What every run reads: packed blocks, and weights but for large ones, which may be tables of which
 * a run looks up a few rows. Entries follow each other in the file. */
static void populate(const ort_pack *pack)
{
    uint64_t first = ORT_PACK_PAGE, end = ORT_PACK_PAGE;
    for (size_t i = 0; i < pack->entry_count; i++) {
        const ort_pack_entry *e = &pack->entries[i];
        bool skips = ort_pack_is_table(e);
        if (skips || e->offset < end) {
            populate_range(pack, first, end);
            first = end = e->offset + (skips ? e->bytes : 0);
        }
        if (!skips)
            end = e->offset + e->bytes;
    }
    populate_range(pack, first, end);
}

/* Zeros in place of data that was left out; no page of it is ever touched. */
static ort_status map_absent(const ort_pack *pack, ort_blob **absent, ort_error *err)
{
    size_t bytes = pack->absent_bytes ? pack->absent_bytes : 1;
    *absent = NULL;
    void *zeros = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED)
        return ort_error_memory(err, bytes);
    return ort_blob_new(ORT_BLOB_MAPPED, zeros, bytes, absent, err);
}

static ort_status import_graph(ort_env *env, const ort_pack *pack, const ort_source *origin,
                               ort_model **model, ort_error *err)
{
    ort_source graph = {.bytes = pack->graph, .count = pack->graph_bytes, .label = origin->label,
                        .stored = pack->blob};
    *model = NULL;
    ORT_TRY(map_absent(pack, &graph.absent, err));
    ort_status status = ort_model_import(&graph, env->registry, model, err);
    ort_blob_release(graph.absent);
    if (status == ORT_OK)
        status = ort_pack_graph_settle((*model)->graph, err);
    if (status != ORT_OK) {
        ort_model_free(*model);
        *model = NULL;
    }
    return status;
}

ort_status ort_pack_session(ort_env *env, ort_pack *pack, ort_source *source,
                            const ort_session_options *options, ort_session **session,
                            ort_error *err)
{
    ort_packing packing;
    ort_model *model = NULL;
    *session = NULL;
    ort_packing_init(&packing, pack);
    populate(pack);
    ort_status status = ort_pack_verify(pack, env->pool, err);
    if (status == ORT_OK)
        status = import_graph(env, pack, source, &model, err);
    if (status == ORT_OK && options && !options->allow_newer &&
        ort_check_newer(model, err) != ORT_OK)
        status = ort_error_recast(err, ORT_ERROR_USAGE, "made with --allow-newer");
    if (status == ORT_OK)
        status = refuse_other_values(model->graph, options, err);
    const ort_session_parts parts = {.env = env, .model = model, .options = options,
                                     .packing = &packing, .origin = source};
    if (status != ORT_OK)
        ort_model_free(model);
    else
        status = ort_exec_session_make(&parts, session, err);
    if (status == ORT_OK && packing.misfits)
        status = ort_error_set(err, ORT_ERROR_MODEL, "its blocks aren't those of its graph");
    if (status != ORT_OK) {
        ort_exec_session_release(*session);
        *session = NULL;
    }
    ort_source_release(source);
    ort_packing_release(&packing);
    ort_pack_release(pack);
    return status;
}

static void ignore(const ort_env *env, const char *path, ort_log_level level, const char *why)
{
    ort_log_write(&env->log, level, "%s" ORT_PACK_SUFFIX ": ignored: %s%s", path, why,
                  level == ORT_LOG_WARNING ? " (ort-optimize --pack writes a new one)" : "");
}

ort_status ort_exec_session_beside(ort_env *env, const char *path,
                                   const ort_session_options *options, ort_session **session,
                                   ort_error *err)
{
    ort_source source;
    ort_pack pack;
    ort_error why = {0};
    ort_load_options load = {.size = sizeof load,
                             .external_root = options ? options->external_root : NULL};
    char name[PATH_MAX];
    *session = NULL;
    /* A model from a pipe can be read once: without a pack it isn't touched here. */
    if (!find_pack(path, name) || ort_source_open(path, &load, &source, NULL) != ORT_OK)
        return ORT_OK; /* whoever loads the model says what is wrong */
    ort_status status = ort_pack_beside(env, path, &source, &pack, &why);
    if (status != ORT_OK || !pack.blob) {
        ort_source_release(&source);
        if (status != ORT_OK)
            ignore(env, path, ORT_LOG_WARNING, why.message);
        return ORT_OK;
    }
    if (!ort_pack_options_fit(env, options)) {
        ort_pack_release(&pack);
        ort_source_release(&source);
        ignore(env, path, ORT_LOG_INFO, "these settings aren't those that it was made with");
        return ORT_OK;
    }
    size_t blocks = pack.entry_count, bytes = pack.blob->count;
    status = ort_pack_session(env, &pack, &source, options, session, &why);
    if (status != ORT_OK)
        ignore(env, path, status == ORT_ERROR_USAGE ? ORT_LOG_INFO : ORT_LOG_WARNING,
               why.message);
    else
        ort_log_write(&env->log, ORT_LOG_INFO, "%s" ORT_PACK_SUFFIX ": mapped, %zu blocks, "
                      "%.1f MB", path, blocks, (double)bytes / 1e6);
    return ORT_OK;
}
