/* check_message.c - the model of a message (check_message.h): its header, functions and graph. */
#include "op/check/check_message.h"

#include "base/error.h"
#include "op/check/check.h"

static void check_metadata(ort_message_check *c, const Onnx__ModelProto *model)
{
    ort_hashmap seen = {0};
    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const char *key = ort_check_text(model->metadata_props[i]->key);
        if (!ort_check_first(c, &seen, key))
            ort_findings_add(c->findings, ORT_FINDING_WARNING,
                             "metadata property '%s' is there twice", key);
    }
    ort_hashmap_release(&seen);
}

static void check_header(ort_message_check *c)
{
    const ort_model *model = c->model;
    const Onnx__ModelProto *proto = model->proto;
    if (model->ir_version > ORT_NEWEST_IR)
        ort_findings_add(c->findings, ORT_FINDING_ERROR,
                         "IR version %lld is newer than %d, the newest known: what it means by "
                         "what the file says isn't sure; a newer ort-tools may know it",
                         (long long)model->ir_version, ORT_NEWEST_IR);
    for (size_t i = 0; i < model->opsets.count; i++) {
        const ort_opset *o = &model->opsets.data[i];
        int64_t newest = ort_check_newest(o->domain);
        if (o->version > newest)
            ort_findings_add(c->findings, ORT_FINDING_ERROR,
                             "opset %lld of '%s' is newer than %lld, the newest known; "
                             "--allow-newer runs it all the same",
                             (long long)o->version, *o->domain ? o->domain : "ai.onnx",
                             (long long)newest);
    }
    if (model->ir_version < 3 && proto->n_opset_import)
        ort_findings_add(c->findings, ORT_FINDING_WARNING,
                         "IR version %lld knows no opset imports, but there are %zu: 3 and later "
                         "do",
                         (long long)model->ir_version, proto->n_opset_import);
}

ort_status ort_check_message(const ort_model *model, ort_findings *findings, ort_error *err)
{
    ort_message_check c = {.model = model, .findings = findings, .err = err};
    const Onnx__ModelProto *proto = model->proto;
    if (!proto)
        return ORT_OK;
    ORT_TRY(ort_functions_index(model, &c.functions, err));
    check_header(&c);
    check_metadata(&c, proto);
    for (size_t i = 0; i < proto->n_functions; i++)
        ort_check_function(&c, proto->functions[i]);
    ort_check_message_graph(&c, proto->graph, "");
    ort_functions_index_release(&c.functions);
    return c.status;
}
