/* import.c - from the bytes of a model to the model: unpack, then build graph, functions,
 * metadata. The unpacked messages stay in the model's arena: names and lists are used where they
 * lie, and an untouched model is saved from them. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/huge.h"
#include "graph/build.h"
#include "io/blob.h"
#include "io/message.h"
#include "io/source.h"

static void read_opsets(Onnx__OperatorSetIdProto *const *protos, size_t count, ort_opset *opsets)
{
    for (size_t i = 0; i < count; i++)
        opsets[i] = (ort_opset){ort_build_domain(protos[i]->domain), protos[i]->version, false};
}

static const char **copy_names(ort_arena *arena, char *const *names, size_t count)
{
    const char **copy = ort_arena_array(arena, count, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        copy[i] = names[i];
    return copy;
}

/* Each is looked for by its domain at every node. */
enum { MAX_OPSETS = 1000 };

static ort_status check_opset_count(size_t count, ort_error *err)
{
    if (count <= MAX_OPSETS)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_MODEL, "imports %zu opsets, %d at most are taken", count,
                         MAX_OPSETS);
}

static ort_status read_function(ort_builder *b, const Onnx__FunctionProto *p, ort_function *f,
                                ort_error *err)
{
    ort_arena *arena = &b->model->arena;
    ORT_TRY(check_opset_count(p->n_opset_import, err));
    *f = (ort_function){.domain = ort_build_domain(p->domain), .name = ort_build_text(p->name),
                        .overload = ort_build_text(p->overload),
                        .doc = ort_build_text(p->doc_string), .proto = p,
                        .input_count = (int)p->n_input, .output_count = (int)p->n_output,
                        .attr_count = (int)p->n_attribute, .opset_count = (int)p->n_opset_import,
                        .default_count = (int)p->n_attribute_proto};
    f->inputs = copy_names(arena, p->input, p->n_input);
    f->outputs = copy_names(arena, p->output, p->n_output);
    f->attrs = copy_names(arena, p->attribute, p->n_attribute);
    f->defaults = ort_arena_array(arena, p->n_attribute_proto, sizeof *f->defaults);
    f->opsets = ort_arena_array(arena, p->n_opset_import, sizeof *f->opsets);
    if (!f->inputs || !f->outputs || !f->attrs || !f->defaults || !f->opsets)
        return ort_error_memory(err, sizeof *f);
    for (size_t i = 0; i < p->n_attribute_proto; i++)
        ORT_TRY(ort_build_attr(b, p->attribute_proto[i], &f->defaults[i], err));
    read_opsets(p->opset_import, p->n_opset_import, f->opsets);
    return ORT_OK;
}

static ort_status read_functions(ort_builder *b, const Onnx__ModelProto *p, ort_error *err)
{
    for (size_t i = 0; i < p->n_functions; i++) {
        ort_function f;
        ort_status status = read_function(b, p->functions[i], &f, err);
        if (status != ORT_OK)
            return ort_error_wrap(err, status, "function '%s'",
                                  ort_build_text(p->functions[i]->name));
        if (!ort_vec_push(&b->model->functions, f))
            return ort_error_memory(err, sizeof f);
    }
    return ORT_OK;
}

static ort_status read_header(ort_model *model, const Onnx__ModelProto *p, ort_error *err)
{
    model->ir_version = p->ir_version;
    model->model_version = p->model_version;
    model->producer_name = ort_build_text(p->producer_name);
    model->producer_version = ort_build_text(p->producer_version);
    model->domain = ort_build_text(p->domain);
    model->doc = ort_build_text(p->doc_string);
    model->metadata = ort_arena_array(&model->arena, p->n_metadata_props, sizeof *model->metadata);
    if (!model->metadata || !ort_vec_reserve(&model->opsets, p->n_opset_import + 1))
        return ort_error_memory(err, p->n_metadata_props * sizeof *model->metadata);
    model->metadata_count = p->n_metadata_props;
    for (size_t i = 0; i < p->n_metadata_props; i++) {
        model->metadata[i].key = ort_build_text(p->metadata_props[i]->key);
        model->metadata[i].value = ort_build_text(p->metadata_props[i]->value);
    }
    read_opsets(p->opset_import, p->n_opset_import, model->opsets.data);
    model->opsets.count = p->n_opset_import;
    /* Before IR 3 a model had no opset_import: opset 1. */
    if (p->n_opset_import == 0 && p->ir_version < 3)
        model->opsets.data[model->opsets.count++] = (ort_opset){"", 1, false};
    ORT_TRY(check_opset_count(p->n_opset_import, err));
    if (p->ir_version <= 0)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "has no ir_version: not an ONNX model, or a damaged one");
    if (!p->graph)
        return ort_error_set(err, ORT_ERROR_MODEL, "has no graph: not an ONNX model, or a damaged "
                                                   "one");
    return ORT_OK;
}

static ort_status read_source(ort_model *model, const ort_source *source, ort_error *err)
{
    model->path = ort_arena_strdup(&model->arena, source->label ? source->label : "<memory>");
    model->reach = ort_arena_alloc(&model->arena, sizeof *model->reach);
    model->file_bytes = source->count;
    model->skeleton = source->skeleton;
    model->as_stored = source->as_stored;
    if (!model->path || !model->reach)
        return ort_error_memory(err, 1);
    ORT_TRY(ort_reach_copy(&source->reach, &model->arena, model->reach, err));
    ort_blob *blobs[] = {source->blob, source->stored, source->absent};
    for (int i = 0; i < 3; i++) {
        if (!blobs[i])
            continue;
        if (!ort_vec_push(&model->blobs, blobs[i]))
            return ort_error_memory(err, sizeof blobs[i]);
        ort_blob_retain(blobs[i]);
    }
    return ORT_OK;
}

static ort_status import(ort_model *model, const ort_source *source, ort_error *err)
{
    ort_message message;
    ort_loading_allow_file(source->count);
    if (source->count >= ORT_HUGE_FROM)
        ort_huge_begin(&model->arena);
    ORT_TRY(read_source(model, source, err));
    ORT_TRY(ort_message_unpack(ORT_WIRE_MODEL, source->bytes, source->count, false, &model->arena,
                               &message, err));
    const Onnx__ModelProto *proto = (const Onnx__ModelProto *)message.root;
    model->proto = proto;
    model->payloads = message.payloads;
    model->payload_count = message.payload_count;
    ORT_TRY(read_header(model, proto, err));
    ort_builder builder;
    ORT_TRY(ort_builder_init(&builder, model, err));
    builder.codec.stored = source->stored;
    builder.codec.absent = source->absent;
    ort_status status = read_functions(&builder, proto, err);
    if (status == ORT_OK)
        status = ort_build_graph(&builder, proto->graph, NULL, ORT_ID_NONE, &model->graph, err);
    if (status == ORT_OK && ort_dim_table_take_failure(model->dims)) /* a declared name is lost */
        status = ort_error_memory(err, sizeof(ort_dim));
    ort_status finished = ort_builder_finish(&builder, status == ORT_OK ? err : NULL);
    ort_builder_release(&builder);
    for (size_t i = 0; source->in_pieces && i < model->blobs.count; i++) {
        const ort_blob *blob = model->blobs.data[i]; /* files of external data among them */
        ort_blob_in_pieces(blob);
        ort_model_forget(model, blob->bytes, blob->count);
    }
    return status == ORT_OK ? finished : status;
}

ort_status ort_model_import(const struct ort_source *source, const struct ort_registry *registry,
                            ort_model **out, ort_error *err)
{
    ort_model *model = ort_model_new();
    *out = NULL;
    if (!model)
        return ort_error_memory(err, sizeof *model);
    model->registry = registry;
    ort_status status = import(model, source, err);
    if (status != ORT_OK) {
        ort_model_free(model);
        return ort_error_wrap(err, status, "%s", source->label ? source->label : "<memory>");
    }
    *out = model;
    return ORT_OK;
}
