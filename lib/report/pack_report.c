/* pack_report.c - the pack beside a model, described: does it fit, what does it hold, and, read
 * whole, is it what was written? */
#include "report/pack_report.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "exec/packing.h"
#include "report/report.h"

typedef struct kind { /* blocks of one kind */
    const char *name;
    size_t count;
    uint64_t bytes; /* in the file: of a block that several steps have, once */
} kind;

enum { KINDS = 64 };

static void put_kinds(const ort_pack *pack, ort_json *json)
{
    kind kinds[KINDS];
    int count = 0;
    uint64_t end = 0; /* of the blocks so far: one before it is there again */
    for (size_t i = 0; i < pack->entry_count; i++) {
        const ort_pack_entry *e = &pack->entries[i];
        int k = 0;
        while (k < count && strcmp(kinds[k].name, e->kind))
            k++;
        if (k == KINDS)
            continue;
        if (k == count)
            kinds[count++] = (kind){.name = e->kind};
        kinds[k].count++;
        kinds[k].bytes += e->offset < end ? 0 : e->bytes;
        end = e->offset < end ? end : e->offset + e->bytes;
    }
    ort_json_key(json, "blocks");
    ort_json_begin_array(json);
    for (int k = 0; k < count; k++) {
        ort_json_begin_object(json);
        ort_report_text(json, "kind", kinds[k].name);
        ort_report_int(json, "count", (int64_t)kinds[k].count);
        ort_report_int(json, "bytes", (int64_t)kinds[k].bytes);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
}

static void put_pack(const ort_pack *pack, ort_json *json)
{
    ort_report_text(json, "library", pack->stamp.library);
    ort_report_text(json, "isa", pack->stamp.isa);
    ort_report_int(json, "file_bytes", (int64_t)pack->blob->count);
    ort_report_int(json, "graph_bytes", (int64_t)pack->graph_bytes);
    put_kinds(pack, json);
}

/* The weights of the model's own file are those that its metadata and the pack state. */
static ort_status verify_model(const ort_env *env, const ort_pack *pack, const ort_source *source,
                               ort_error *err)
{
    ort_model *model = NULL;
    ORT_TRY(ort_model_import(source, env->registry, &model, err));
    uint64_t digest = ort_pack_weights_digest(model);
    ort_model_free(model);
    if (digest == pack->stamp.weights)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_MODEL,
                         "the model's weights have digest %016llx, the pack was made of %016llx",
                         (unsigned long long)digest, (unsigned long long)pack->stamp.weights);
}

/* A session of it, made and dropped: its blocks are those of its graph. Takes the pack. */
static ort_status make_session(ort_env *env, const char *path, const ort_load_options *options,
                               ort_pack *pack, ort_error *err)
{
    ort_source source;
    ort_session *session = NULL;
    ort_status status = ort_source_open(path, options, &source, err);
    if (status != ORT_OK) {
        ort_pack_release(pack);
        return status;
    }
    status = ort_pack_session(env, pack, &source, NULL, &session, err);
    ort_exec_session_release(session);
    return status;
}

static ort_status examine(ort_env *env, const char *path, const ort_load_options *options,
                          bool verify, ort_json *json, ort_error *why, bool *present,
                          ort_error *err)
{
    ort_source source;
    ort_pack pack;
    ORT_TRY(ort_source_open(path, options, &source, err));
    ort_status status = ort_pack_beside(env, path, &source, &pack, why);
    *present = status != ORT_OK || pack.blob;
    if (status == ORT_OK && !pack.blob)
        status = ort_error_set(why, ORT_ERROR_IO, "there is none");
    if (pack.blob)
        put_pack(&pack, json);
    if (status == ORT_OK && verify)
        status = ort_pack_verify(&pack, env->pool, why);
    if (status == ORT_OK && verify)
        status = verify_model(env, &pack, &source, why);
    ort_source_release(&source);
    if (status == ORT_OK)
        return make_session(env, path, options, &pack, why) && why->status == ORT_ERROR_MEMORY
                   ? ort_error_set(err, ORT_ERROR_MEMORY, "%s", why->message)
                   : ORT_OK;
    ort_pack_release(&pack);
    return ORT_OK;
}

ort_status ort_exec_pack_report(ort_env *env, const char *path, const ort_load_options *options,
                                bool verify, bool *fits, ort_strbuf *out, ort_error *err)
{
    ort_json json;
    ort_error why = {0};
    bool present = false;
    ort_json_init(&json, out, 2);
    ort_json_begin_object(&json);
    ort_report_text(&json, "schema", "ort-inspect/1");
    ort_report_text(&json, "report", "pack");
    ort_report_text(&json, "model", path);
    ort_status status = examine(env, path, options, verify, &json, &why, &present, err);
    *fits = status == ORT_OK && why.status == ORT_OK;
    ort_json_key(&json, "present");
    ort_json_bool(&json, present);
    ort_json_key(&json, "fits");
    ort_json_bool(&json, *fits);
    ort_json_key(&json, "verified");
    ort_json_bool(&json, *fits && verify);
    if (!*fits)
        ort_report_text(&json, "why", why.message);
    ort_json_end_object(&json);
    return status;
}
