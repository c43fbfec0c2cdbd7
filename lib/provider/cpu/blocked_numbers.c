/* blocked_numbers.c - what does the same to each pixel of a channel, by constants: PRelu,
 * BatchNormalization, and Mul, Div, Add and Sub of one number per channel. In the blocked layout
 * each becomes the lists of a BlockedAffine (op/blocked/between/affine_channels.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pass/fuse/affine.h"
#include "provider/cpu/blocked_choose.h"

static bool site_of(const ort_graph *graph, const ort_node *node, ort_affine_site *site)
{
    bool norm = ort_edit_is_any(node, "BatchNormalization|PRelu");
    if ((!norm && !ort_affine_is(node)) || node->opset < 7 || node->input_count < 2 ||
        node->inputs[0] == ORT_ID_NONE || node->inputs[1] == ORT_ID_NONE)
        return false;
    int slot = !norm && ort_edit_constant(graph, node, 0) ? 1 : 0;
    const ort_type *t = ort_fact_type(graph, node->inputs[slot]);
    if (t->kind != ORT_TYPE_TENSOR || t->rank < 3 || !ort_dim_known(t->dim[1]))
        return false;
    *site = (ort_affine_site){node, slot, t, 1, t->dim[1].size};
    return true;
}

static bool read_slopes(const ort_graph *graph, const ort_affine_site *site, double *slopes)
{
    return !ort_affine_numbers(site, ort_edit_constant(graph, site->node, 1), slopes);
}

ort_id ort_blocked_affine_data(const ort_graph *graph, const ort_node *node)
{
    ort_affine_site site;
    ort_affine a = {0};
    bool reads;
    if (!site_of(graph, node, &site))
        return ORT_ID_NONE;
    if (ort_edit_is(node, ONNX, "PRelu")) {
        double *slopes = malloc((size_t)(site.channels + 1) * sizeof *slopes);
        reads = slopes && read_slopes(graph, &site, slopes);
        free(slopes);
    } else {
        reads = !ort_affine_read(graph, &site, &a);
        ort_affine_release(&a);
    }
    return reads ? node->inputs[site.slot] : ORT_ID_NONE;
}

static bool list_of(ort_arena *arena, const char *name, const double *numbers, int64_t count,
                    ort_attr *attr)
{
    float *list = ort_arena_array(arena, (size_t)count + 1, sizeof *list);
    for (int64_t i = 0; list && i < count; i++)
        list[i] = (float)numbers[i];
    *attr = (ort_attr){.name = name, .type = ORT_ATTR_FLOATS, .floats = list,
                       .count = (size_t)count};
    return list;
}

int ort_blocked_affine_attrs(ort_graph *graph, const ort_node *node, ort_attr *attrs)
{
    ort_arena *arena = &graph->model->arena;
    ort_affine_site site;
    ort_affine a = {0};
    int count = 0;
    if (!site_of(graph, node, &site))
        return 0;
    bool slopes = ort_edit_is(node, ONNX, "PRelu"), made = true;
    attrs[count++] = ort_attr_int("channels", site.channels);
    if (slopes) {
        a.scale = malloc((size_t)(site.channels + 1) * sizeof *a.scale);
        made = a.scale && read_slopes(graph, &site, a.scale) &&
               list_of(arena, "slopes", a.scale, site.channels, &attrs[count++]);
    } else {
        made = !ort_affine_read(graph, &site, &a);
        if (made && a.scales)
            made = list_of(arena, "scales", a.scale, site.channels, &attrs[count++]);
        if (made && a.shifts)
            made = list_of(arena, "shifts", a.shift, site.channels, &attrs[count++]);
    }
    ort_affine_release(&a);
    return made ? count : 0;
}
