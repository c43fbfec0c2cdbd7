/* node_names.c - names for nodes that have none, as exporters of old wrote them; and which nodes
 * the names in options mean.
 */
#include "quantize/node_names.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hashmap.h"
#include "base/nearest.h"

static bool collect(const ort_graph *graph, ort_hashmap *names)
{
    ort_node *node;
    bool ok = true;
    ORT_EACH_NODE(graph, node)
    {
        ok = ok && (!*node->name || ort_hashmap_put_str(names, node->name, 0));
        for (int b = 0; b < node->body_count && ok; b++)
            ok = collect(node->bodies[b], names);
    }
    return ok;
}

/* "" where it has no output with a name. */
static const char *first_output(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            return graph->values.data[node->outputs[i]]->name;
    return "";
}

static bool name_node(ort_arena *arena, ort_graph *graph, ort_node *node, ort_hashmap *names)
{
    const char *base = first_output(graph, node), *name = base;
    for (int i = 1; name && *name && ort_hashmap_get_str(names, name, NULL); i++)
        name = ort_arena_printf(arena, "%s_%d", base, i);
    if (!name)
        return false;
    if (!*name)
        return true;
    node->name = name;
    ort_graph_touch(graph, node);
    return ort_hashmap_put_str(names, name, 0);
}

/* Nobody chooses these, and files that were quantized before stay as they are. */
static bool stays_nameless(const ort_node *node)
{
    return ort_node_is_constant(node) || !strcmp(node->op_type, "QuantizeLinear") ||
           !strcmp(node->op_type, "DequantizeLinear");
}

static bool name_all(ort_arena *arena, ort_graph *graph, ort_hashmap *names)
{
    ort_node *node;
    bool ok = true;
    ORT_EACH_NODE(graph, node)
    {
        if (ok && !*node->name && !stays_nameless(node))
            ok = name_node(arena, graph, node, names);
        for (int b = 0; b < node->body_count && ok; b++)
            ok = name_all(arena, node->bodies[b], names);
    }
    return ok;
}

ort_status ort_quantize_name_nodes(ort_model *model, ort_error *err)
{
    ort_hashmap names = {0};
    const bool ok = collect(model->graph, &names) &&
                    name_all(&model->arena, model->graph, &names);
    ort_hashmap_release(&names);
    return ok ? ORT_OK : ort_error_memory(err, sizeof names);
}

/* ---- names that options say */

static bool matches(const char *pattern, const char *name, size_t length)
{
    const char *star = NULL, *end = name + length, *from = name;
    while (name < end) {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern && (*pattern == '?' || *pattern == *name)) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

bool ort_name_matches(const char *pattern, const char *name)
{
    return matches(pattern, name, strlen(name));
}

/* Does `pattern` meet one of the names that stand in `names`, joined by "+", behind `before`? */
static bool meets_one(const char *pattern, const char *before, const char *names)
{
    char text[1024];
    for (const char *part = names; part && *part;) {
        const size_t length = strcspn(part, "+");
        const int whole = snprintf(text, sizeof text, "%s%.*s", before, (int)length, part);
        if (*before ? whole > 0 && (size_t)whole < sizeof text && ort_name_matches(pattern, text)
                    : matches(pattern, part, length))
            return true;
        part += length + (part[length] == '+');
    }
    return false;
}

/* An origin joins names. */
static bool is_from(const ort_node *node, const char *pattern)
{
    return meets_one(pattern, "", node->origin);
}

bool ort_node_is_called(const ort_node *node, const char *pattern)
{
    return (node->name[0] && ort_name_matches(pattern, node->name)) || is_from(node, pattern);
}

bool ort_node_is_named(const ort_node *node, const char *pattern)
{
    return ort_name_matches(pattern, node->op_type) || ort_node_is_called(node, pattern);
}

/* "loop1/", and that of what is around it before it; "" where that is too long. */
static size_t put_place(const ort_graph *graph, char *text, size_t size)
{
    if (!graph->parent)
        return 0;
    const size_t before = put_place(graph->parent, text, size);
    const int more = snprintf(text + before, size - before, "%s/",
                              graph->parent->nodes.data[graph->parent_node]->name);
    const bool fits = more > 0 && before + (size_t)more < size;
    text[fits ? before + (size_t)more : 0] = '\0';
    return fits ? before + (size_t)more : 0;
}

/* Of a body, with the names of those around it in front, as notes have it. */
static bool is_placed(const ort_graph *graph, const ort_node *node, const char *pattern)
{
    char place[512] = "", name[512];
    if (put_place(graph, place, sizeof place) == 0)
        return false;
    snprintf(name, sizeof name, "%s%s", place, node->name);
    return (node->name[0] && ort_name_matches(pattern, name)) ||
           meets_one(pattern, place, node->origin);
}

static bool is_meant(const ort_graph *graph, const ort_node *node, const char *pattern)
{
    return ort_node_is_named(node, pattern) ||
           (graph->parent && is_placed(graph, node, pattern));
}

bool ort_node_is_listed(const ort_graph *graph, const ort_node *node, const char *const *patterns)
{
    for (; patterns && *patterns; patterns++)
        if (is_meant(graph, node, *patterns))
            return true;
    return false;
}

const char *ort_node_unwanted(const ort_graph *graph, const ort_node *node,
                              const char *const *include, const char *const *exclude)
{
    if (ort_node_is_listed(graph, node, exclude))
        return "it is excluded";
    return include && !ort_node_is_listed(graph, node, include) ? "it isn't among what is included"
                                                         : NULL;
}

static bool is_met(const ort_graph *graph, const char *pattern)
{
    bool met = false;
    ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        met = met || is_meant(graph, node, pattern);
        for (int b = 0; b < node->body_count && !met; b++)
            met = is_met(node->bodies[b], pattern);
    }
    return met;
}

static void try_names(const ort_graph *graph, ort_nearest *n)
{
    ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        ort_nearest_try(n, node->name);
        ort_nearest_try(n, node->op_type);
        for (int b = 0; b < node->body_count; b++)
            try_names(node->bodies[b], n);
    }
}

static ort_status check_list(const ort_graph *graph, const char *const *patterns,
                             const char *list, ort_error *err)
{
    char near[300];
    ort_nearest n;
    for (; patterns && *patterns; patterns++) {
        if (is_met(graph, *patterns))
            continue;
        ort_nearest_begin(&n, *patterns);
        try_names(graph, &n);
        return ort_error_set(err, ORT_ERROR_USAGE, "%s: no node or operator of the model is "
                             "called '%.200s'%s", list, *patterns,
                             ort_nearest_text(&n, near, sizeof near));
    }
    return ORT_OK;
}

ort_status ort_nodes_check_lists(const ort_graph *graph, const char *const *include,
                                 const char *const *exclude, ort_error *err)
{
    ORT_TRY(check_list(graph, exclude, "exclude", err));
    return check_list(graph, include, "include", err);
}
