/* part.c - see part.h. A model is put together of what the graph has (nodes, weights) and of values
 * with new names and settled types; the writer of files does the rest. */
#include "graph/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/export.h"

typedef struct made { /* while one is made */
    const ort_graph_part *part;
    ort_arena arena;
    ort_model model;
    ort_graph graph;
    bool failed; /* memory was short */
} made;

/* In the element type that nodes read: a session keeps some weights in 16 bits. */
static const ort_tensor *constant_of(made *m, ort_id id)
{
    const ort_fact *fact = &m->part->facts[id];
    const ort_tensor *t = m->part->constants ? m->part->constants[id] : NULL;
    t = t ? t : fact->value;
    if (!t || t->dtype == fact->type.dtype)
        return t;
    ort_tensor *wide = ort_arena_alloc(&m->arena, sizeof *wide);
    if (wide) {
        *wide = (ort_tensor){.dtype = fact->type.dtype, .shape = t->shape};
        wide->data = ort_arena_alloc(&m->arena, ort_tensor_bytes(wide) + 1);
    }
    if (!wide || !wide->data) {
        m->failed = true;
        return NULL;
    }
    ort_tensor_convert(wide, t, NULL);
    return wide;
}

static void add_value(made *m, ort_id id)
{
    char name[24];
    ort_graph_value *value;
    if (id == ORT_ID_NONE || m->graph.values.data[id] || m->failed)
        return;
    value = ort_arena_alloc(&m->arena, sizeof *value);
    snprintf(name, sizeof name, "v%u", (unsigned)id);
    if (value) {
        *value = (ort_graph_value){.outer = ORT_ID_NONE};
        value->fact.type = m->part->facts[id].type;
        value->fact.value = constant_of(m, id);
        value->name = ort_arena_strdup(&m->arena, name);
    }
    m->failed = m->failed || !value || !value->name ||
                (value->fact.value && !ort_vec_push(&m->graph.initializers, id));
    m->graph.values.data[id] = value;
}

static void add_nodes(made *m)
{
    for (size_t i = 0; i < m->part->node_count && !m->failed; i++) {
        const ort_node *node = m->part->nodes[i];
        for (int k = 0; k < node->input_count; k++)
            add_value(m, node->inputs[k]);
        for (int k = 0; k < node->output_count; k++)
            add_value(m, node->outputs[k]);
        ort_id place = (ort_id)i;
        m->failed = m->failed || !ort_vec_push(&m->graph.nodes, (ort_node *)(uintptr_t)node) ||
                    !ort_vec_push(&m->graph.order, place);
    }
    for (size_t i = 0; i < m->part->input_count; i++)
        m->failed = !ort_vec_push(&m->graph.inputs, m->part->inputs[i]) || m->failed;
    for (size_t i = 0; i < m->part->output_count; i++)
        m->failed = !ort_vec_push(&m->graph.outputs, m->part->outputs[i]) || m->failed;
}

static void begin(made *m)
{
    const ort_model *whole = m->part->graph->model;
    size_t values = m->part->graph->values.count;
    m->model.graph = &m->graph;
    m->model.dims = whole->dims;
    m->model.ir_version = whole->ir_version < 8 ? whole->ir_version : 8;
    m->model.producer_name = "libort";
    m->model.producer_version = ort_version();
    m->model.domain = m->model.doc = "";
    m->model.opsets.data = whole->opsets.data;
    m->model.opsets.count = whole->opsets.count;
    m->model.payloads = whole->payloads;
    m->model.payload_count = whole->payload_count;
    m->model.changed = true;
    m->graph.model = &m->model;
    m->graph.name = "part";
    m->graph.doc = "";
    m->graph.changed = true;
    m->failed = !ort_vec_reserve(&m->graph.values, values + 1);
    for (size_t i = 0; i < values && !m->failed; i++)
        (void)ort_vec_push(&m->graph.values, (ort_graph_value *)NULL);
}

typedef struct bytes_out {
    uint8_t *data;
    size_t count, room;
} bytes_out;

static ort_status put(void *arg, const void *data, size_t count, ort_error *err)
{
    bytes_out *b = arg;
    if (b->count + count > b->room) {
        size_t room = (b->count + count) * 2;
        uint8_t *more = realloc(b->data, room);
        if (!more)
            return ort_error_memory(err, room);
        b->data = more;
        b->room = room;
    }
    if (count)
        memcpy(b->data + b->count, data, count);
    b->count += count;
    return ORT_OK;
}

ort_status ort_graph_part_export(const ort_graph_part *part, void **bytes, size_t *count,
                                 ort_error *err)
{
    made m = {.part = part};
    bytes_out out = {0};
    begin(&m);
    add_nodes(&m);
    ort_status status = m.failed ? ort_error_memory(err, sizeof m)
                                 : ort_model_export(&m.model, NULL, put, &out, err);
    ort_vec_release(&m.graph.nodes);
    ort_vec_release(&m.graph.order);
    ort_vec_release(&m.graph.values);
    ort_vec_release(&m.graph.inputs);
    ort_vec_release(&m.graph.outputs);
    ort_vec_release(&m.graph.initializers);
    ort_arena_release(&m.arena);
    if (status != ORT_OK)
        free(out.data);
    *bytes = status == ORT_OK ? out.data : NULL;
    *count = out.count;
    return status;
}
