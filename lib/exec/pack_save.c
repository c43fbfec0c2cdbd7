/* pack_save.c - the pack of a model that is being saved. It is written when the bytes of the model
 * are complete but the model isn't yet in its place; it is opened again as a proof, and put in its
 * place before the model is.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "exec/packing.h"
#include "io/source.h"

enum { INLINE_BYTES = 1024 }; /* smaller tensors lie in the graph's message */

typedef struct writing {
    ort_pack_writer *writer;
    const ort_packing *packing;
    size_t absent_bytes;
} writing;

static ort_status place(void *arg, const ort_tensor *tensor, uint64_t *offset, ort_error *err)
{
    writing *w = arg;
    size_t bytes = ort_tensor_bytes(tensor);
    if (ort_packing_is_read(w->packing, tensor))
        return ort_pack_writer_add(w->writer, ORT_PACK_NO_STEP, ORT_PACK_WEIGHT, tensor->data,
                                   bytes, offset, err);
    *offset = ORT_EXPORT_NOWHERE;
    if (w->absent_bytes < bytes)
        w->absent_bytes = bytes;
    return ORT_OK;
}

static ort_status to_text(void *arg, const void *bytes, size_t count, ort_error *err)
{
    ort_strbuf *text = arg;
    ort_strbuf_add_bytes(text, bytes, count);
    return text->failed ? ort_error_memory(err, count) : ORT_OK;
}

/* Once each, however many steps have it. The entries of the writer are those of `packing`. */
static ort_status write_blocks(const ort_packing *packing, ort_pack_writer *writer, ort_error *err)
{
    ort_hashmap places = {0}; /* of a block in memory: its entry */
    ort_status status = ORT_OK;
    uint64_t offset, entry;
    for (size_t i = 0; status == ORT_OK && i < packing->made.count; i++) {
        const ort_packed *block = &packing->made.data[i];
        const char *key = (const char *)&block->bytes;
        if (ort_hashmap_get(&places, key, sizeof block->bytes, &entry))
            status = ort_pack_writer_repeat(writer, block->step, (size_t)entry, err);
        else if (!ort_hashmap_put(&places, key, sizeof block->bytes, i))
            status = ort_error_memory(err, sizeof block->bytes);
        else
            status = ort_pack_writer_add(writer, block->step, block->kind, block->bytes,
                                         block->count, &offset, err);
    }
    ort_hashmap_release(&places);
    return status;
}

/* Write the pack of a session that was made with `packing`; the file has not appeared yet. */
static ort_status write_pack(const ort_session *session, const ort_packing *packing,
                             const ort_pack_stamp *stamp, ort_pack_writer *writer, ort_error *err)
{
    writing w = {writer, packing, 0};
    ort_save_plan plan = {.location = "pack", .threshold_bytes = INLINE_BYTES, .data_arg = &w,
                          .place = place};
    ort_strbuf graph = {0};
    ort_model *model = NULL;
    ORT_TRY(write_blocks(packing, writer, err));
    ORT_TRY(ort_pack_graph_of(session, &model, err));
    ort_status status = ort_model_export(model, &plan, to_text, &graph, err);
    if (status == ORT_OK)
        status = ort_pack_writer_finish(writer, stamp, graph.data, graph.length, w.absent_bytes,
                                        err);
    ort_strbuf_release(&graph);
    ort_model_free(model);
    return status;
}

/* ---- beside a model that is being saved */

typedef struct saving {
    ort_env *env;
    const char *path; /* of the model */
    ort_session *session;
    ort_packing packing;
} saving;

static ort_status stamp_files(const saving *s, const ort_saved_files *files, ort_source *source,
                              ort_pack_stamp *stamp, ort_error *err)
{
    static const ort_pack_stamp of; /* no data file yet */
    struct stat info;
    ORT_TRY(ort_source_open(files->model, NULL, source, err));
    ORT_TRY(ort_pack_stamp_wanted(s->env, source, &of, stamp, err));
    if (!files->data)
        return ORT_OK;
    if (stat(files->data, &info) != 0 || strlen(files->data_name) >= sizeof stamp->data_file)
        return ort_error_set(err, ORT_ERROR_IO, "%s: its name is too long for a pack",
                             files->data_name);
    snprintf(stamp->data_file, sizeof stamp->data_file, "%s", files->data_name);
    stamp->data_bytes = (uint64_t)info.st_size;
    return ORT_OK;
}

/* The finished file must give a session. Takes source. */
static ort_status prove(const saving *s, const ort_pack_writer *writer, ort_source *source,
                        ort_error *err)
{
    ort_pack pack;
    ort_session *session = NULL;
    ort_status status = ort_pack_open(writer->file->temporary, &pack, err);
    if (status != ORT_OK) {
        ort_source_release(source);
        return status;
    }
    status = ort_pack_session(s->env, &pack, source, NULL, &session, err);
    ort_exec_session_release(session);
    return status;
}

static ort_status before_model(void *arg, const ort_saved_files *files, ort_error *err)
{
    saving *s = arg;
    ort_arena arena = {0};
    ort_source source = {0};
    ort_pack_stamp stamp;
    ort_pack_writer writer;
    const char *path = ort_arena_printf(&arena, "%s" ORT_PACK_SUFFIX, s->path);
    ort_status status = path ? ort_pack_writer_open(&writer, path, err)
                             : ort_error_memory(err, strlen(s->path));
    ort_arena_release(&arena);
    ORT_TRY(status);
    status = stamp_files(s, files, &source, &stamp, err);
    if (status == ORT_OK)
        status = write_pack(s->session, &s->packing, &stamp, &writer, err);
    if (status == ORT_OK)
        status = prove(s, &writer, &source, err);
    else
        ort_source_release(&source);
    if (status == ORT_OK)
        return ort_pack_writer_commit(&writer, err);
    ort_pack_writer_abort(&writer);
    return ort_error_wrap(err, status, "%s" ORT_PACK_SUFFIX, s->path);
}

ort_status ort_exec_save_packed(ort_env *env, ort_model *model, const char *path,
                                const ort_save_options *options, ort_error *err)
{
    saving s = {.env = env, .path = path};
    ort_model *copy = NULL;
    if (!strcmp(path, "-"))
        return ort_error_set(err, ORT_ERROR_USAGE, "a pack lies beside a file: name one");
    if (!ort_pack_options_fit(env, NULL))
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "a pack is made with the default math and denormals, and without "
                             "operator libraries");
    ORT_TRY(ort_model_clone(model, &copy, err));
    ort_packing_init(&s.packing, NULL);
    const ort_session_parts parts = {.env = env, .model = copy, .packing = &s.packing};
    ort_status status = ort_exec_session_make(&parts, &s.session, err);
    if (status == ORT_OK)
        status = ort_model_save_after(model, path, options, before_model, &s, err);
    ort_exec_session_release(s.session);
    ort_packing_release(&s.packing);
    return status;
}
