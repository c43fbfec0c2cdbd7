/* check_newer.c - models of an opset or IR that this build doesn't know (check.h): what changed
 * there isn't known, and its operators might mean something else. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "op/check/check.h"

/* Is one of these newer than what is known? The text says which, at most one. */
static bool find_newer(const ort_opset *opsets, size_t count, char *text, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        const char *domain = opsets[i].domain;
        int64_t newest = ort_check_newest(domain);
        if (opsets[i].version > newest) {
            snprintf(text, size, "opset %lld of '%s' is newer than %lld",
                     (long long)opsets[i].version, *domain ? domain : "ai.onnx",
                     (long long)newest);
            return true;
        }
    }
    return false;
}

/* A node that was inlined has the opset of its function; a pack has nothing else left of those. */
static bool find_newer_node(const ort_graph *graph, char *text, size_t size)
{
    const ort_node *node;
    bool found = false;
    ORT_EACH_NODE(graph, node)
    {
        const ort_opset opset = {.domain = node->domain, .version = node->opset};
        found = found || find_newer(&opset, 1, text, size);
        for (int i = 0; i < node->body_count && !found; i++)
            found = find_newer_node(node->bodies[i], text, size);
    }
    return found;
}

ort_status ort_check_newer(const ort_model *model, ort_error *err)
{
    char ir[80] = "", opset[160] = "";
    bool newer = find_newer(model->opsets.data, model->opsets.count, opset, sizeof opset);
    for (size_t i = 0; i < model->functions.count && !newer; i++)
        newer = find_newer(model->functions.data[i].opsets,
                           (size_t)model->functions.data[i].opset_count, opset, sizeof opset);
    newer = newer || find_newer_node(model->graph, opset, sizeof opset);
    if (model->ir_version > ORT_NEWEST_IR)
        snprintf(ir, sizeof ir, "IR version %lld is newer than %d%s", (long long)model->ir_version,
                 ORT_NEWEST_IR, newer ? " and " : "");
    if (!*ir && !newer)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_MODEL, "%s: %s%s, the newest that this build knows "
                         "(--allow-newer tries it all the same)", model->path, ir, opset);
}
