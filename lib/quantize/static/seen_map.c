/* seen_map.c - values by name: of a graph and of its bodies, where branches that have values of one
 * name share what was seen of them.
 */
#include "quantize/static/seen_map.h"

#include <stdlib.h>

#include "base/error.h"
#include "op/edit.h"

/* What holds the same numbers and is computed: runs don't show what is only another shape of it,
 * nor what a body has from around it. */
static const char *source_of(const ort_graph *graph, ort_id id)
{
    for (;;) {
        const ort_node *node = ort_edit_producer(graph, id);
        if (node && node->op && (node->op->traits & ORT_TRAIT_ALIAS)) {
            id = node->inputs[0];
        } else if (graph->values.data[id]->outer != ORT_ID_NONE) {
            id = graph->values.data[id]->outer;
            graph = graph->parent;
        } else {
            return graph->values.data[id]->name;
        }
    }
}

/* Values whose grid depends on samples: each root of what could become codes, constants not. NULL:
 * no memory. */
static bool *roots_of(const ort_site *site)
{
    const ort_placement *place = &site->widest;
    const ort_graph *graph = site->graph;
    bool *wanted = calloc(graph->values.count + 1, sizeof *wanted);
    for (size_t i = 0; wanted && i < graph->values.count; i++)
        if (place->values[i].coded && !graph->values.data[i]->fact.value)
            wanted[ort_place_root(place, (ort_id)i)] = true;
    return wanted;
}

/* Where among what is observed the values of a site are. `adds`: what isn't there joins it. */
static ort_status map_site(const ort_site *site, ort_ranges *ranges, bool adds, size_t **map,
                           ort_error *err)
{
    size_t count = site->graph->values.count;
    size_t *at = *map = calloc(count + 1, sizeof *at);
    bool *wanted = roots_of(site);
    ort_status status = at && wanted ? ORT_OK : ort_error_memory(err, count * sizeof *at);
    for (size_t i = 0; i < count && status == ORT_OK; i++) {
        const char *name = wanted[i] ? source_of(site->graph, (ort_id)i) : NULL;
        const ort_observed *found = name ? ort_ranges_find(ranges, name) : NULL;
        if (name && !found && adds) {
            status = ort_ranges_add(ranges, name, err);
            found = status == ORT_OK ? ort_ranges_find(ranges, name) : NULL;
        }
        if (found)
            at[i] = (size_t)(found - ranges->values.data) + 1;
    }
    free(wanted);
    return status;
}

void ort_seen_map_release(ort_seen_map *map)
{
    for (size_t i = 0; i < map->sites; i++)
        free(map->at[i]);
    free(map->at);
    *map = (ort_seen_map){0};
}

/* Values are found by their names, whatever numbers they have got. */
ort_status ort_seen_map_make(ort_seen_map *map, const ort_design *design, ort_ranges *ranges,
                             bool adds, ort_error *err)
{
    ort_seen_map_release(map);
    map->at = calloc(design->sites.count + 1, sizeof *map->at);
    if (!map->at)
        return ort_error_memory(err, design->sites.count * sizeof *map->at);
    map->sites = design->sites.count;
    for (size_t i = 0; i < map->sites; i++)
        ORT_TRY(map_site(&design->sites.data[i], ranges, adds, &map->at[i], err));
    return ORT_OK;
}

const ort_observed *ort_seen_find(const ort_seen_map *map, const ort_design *design,
                                  const ort_ranges *ranges, const ort_site *site, ort_id id)
{
    const size_t *at = map->at[site - design->sites.data];
    size_t found = at[id] ? at[id] : at[ort_place_root(&site->widest, id)];
    return found ? &ranges->values.data[found - 1] : NULL;
}
