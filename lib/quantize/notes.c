/* notes.c - notes on nodes, kept apart from the models that they are about. */
#include "quantize/notes.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct ort_quantize_notes {
    ort_arena arena;
    ORT_VEC(ort_quantize_note) list;
};

ort_status ort_quantize_notes_new(ort_quantize_notes **notes, ort_error *err)
{
    if (!notes)
        return ort_error_null(err, __func__);
    *notes = calloc(1, sizeof **notes);
    return *notes ? ORT_OK : ort_error_memory(err, sizeof **notes);
}

void ort_quantize_notes_free(ort_quantize_notes *notes)
{
    if (!notes)
        return;
    ort_arena_release(&notes->arena);
    ort_vec_release(&notes->list);
    free(notes);
}

size_t ort_quantize_notes_count(const ort_quantize_notes *notes)
{
    return notes ? notes->list.count : 0;
}

const ort_quantize_note *ort_quantize_notes_get(const ort_quantize_notes *notes, size_t index)
{
    return notes && index < notes->list.count ? &notes->list.data[index] : NULL;
}

/* "then_branch of 'if1'/conv": bodies by the nodes that they belong to. */
static const char *place_of(ort_arena *arena, const ort_graph *graph, const ort_node *node)
{
    char label[256];
    const char *name = *node->name ? node->name : ort_node_label(node, label, sizeof label);
    const char *text = ort_arena_strdup(arena, name);
    for (; text && graph->parent; graph = graph->parent) {
        const ort_node *outer = graph->parent->nodes.data[graph->parent_node];
        name = *outer->name ? outer->name : ort_node_label(outer, label, sizeof label);
        text = ort_arena_printf(arena, "%s/%s", name, text);
    }
    return text;
}

bool ort_quantize_notes_add(ort_quantize_notes *notes, const ort_graph *graph,
                            const ort_node *node, const char *why, size_t *index)
{
    ort_quantize_note note = {
        .node = place_of(&notes->arena, graph, node),
        .op_type = ort_arena_strdup(&notes->arena, node->op_type),
        .why = why ? ort_arena_strdup(&notes->arena, why) : NULL,
    };
    *index = notes->list.count;
    return note.node && note.op_type && (!why || note.why) && ort_vec_push(&notes->list, note);
}

bool ort_quantize_notes_stays(ort_quantize_notes *notes, size_t index, const char *why)
{
    notes->list.data[index].why = ort_arena_strdup(&notes->arena, why);
    return notes->list.data[index].why != NULL;
}

void ort_quantize_notes_became(ort_quantize_notes *notes, size_t index, const char *operator_,
                               double pairs)
{
    notes->list.data[index].became = operator_;
    notes->list.data[index].saturating = pairs;
}
