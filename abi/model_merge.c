/* model_merge.c - pieces added to the bytes of a model: nodes and initializers behind its own,
 * inputs and outputs in the place of its own where the pieces have some, versions of further
 * domains.
 *
 * The file's own parts are copied as they stand, so that what this library doesn't know stays.
 */
#include "model_editor.h"

#include <string.h>

enum {
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    OPSET_DOMAIN = 1
};

static void merge_graph(abi_proto *p, const unsigned char *bytes, size_t count,
                        const OrtGraph *pieces)
{
    abi_field field;
    for (size_t at = 0; at < count; at = field.end) {
        if (!abi_field_read(bytes, count, at, &field))
            return;
        bool replaced = (field.number == GRAPH_INPUT && pieces->input_count) ||
                        (field.number == GRAPH_OUTPUT && pieces->output_count);
        if (!replaced)
            abi_proto_raw(p, bytes + field.begin, field.end - field.begin);
    }
    abi_put_graph(p, pieces);
}

/* Whether an entry of the model's versions is of `domain`. */
static bool is_of_domain(const unsigned char *bytes, size_t count, const char *domain)
{
    abi_field field;
    for (size_t at = 0; at < count; at = field.end) {
        if (!abi_field_read(bytes, count, at, &field))
            return false;
        if (field.number == OPSET_DOMAIN && field.wire == 2)
            return field.size == strlen(domain) &&
                   !memcmp(bytes + field.at, domain, field.size);
    }
    return !*domain;
}

static bool has_domain(const unsigned char *bytes, size_t count, const char *domain)
{
    abi_field field;
    for (size_t at = 0; at < count; at = field.end) {
        if (!abi_field_read(bytes, count, at, &field))
            return false;
        if (field.number == MODEL_OPSET && field.wire == 2 &&
            is_of_domain(bytes + field.at, field.size, domain))
            return true;
    }
    return false;
}

void abi_merge_model(abi_proto *p, const unsigned char *bytes, size_t count, const OrtModel *pieces)
{
    abi_field field;
    for (size_t at = 0; at < count; at = field.end) {
        if (!abi_field_read(bytes, count, at, &field))
            return;
        if (field.number != MODEL_GRAPH || field.wire != 2) {
            abi_proto_raw(p, bytes + field.begin, field.end - field.begin);
            continue;
        }
        abi_proto_begin(p, MODEL_GRAPH);
        merge_graph(p, bytes + field.at, field.size, pieces->graph);
        abi_proto_end(p);
    }
    for (size_t i = 0; i < pieces->count; i++)
        if (!has_domain(bytes, count, pieces->domains[i]))
            abi_put_opset(p, pieces->domains[i], pieces->versions[i]);
}
