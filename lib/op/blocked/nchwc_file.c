/* nchwc_file.c - how a file holds com.microsoft.nchwc: the block of its nodes, and its filters,
 * which lie in blocks of output channels, and of input channels where the input is blocked.
 *
 * A file doesn't name its block, 16 where it was written on AVX-512 and else 8. It shows in padded
 * channel counts; where all of them are multiples of 16 the block is the one of this machine, as
 * it was for the writer of the file.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "op/blocked/blocked_op.h"

/* ---- the block */

static bool is_ours(const ort_node *node, const char *op_type)
{
    return !strcmp(node->domain, NCHWC) && !strcmp(node->op_type, op_type);
}

static const ort_node *producer_of(const ort_graph *graph, ort_id value)
{
    ort_id id = ort_graph_producer(graph, value);
    return id == ORT_ID_NONE ? NULL : graph->nodes.data[id];
}

static int64_t weight_dim(const ort_graph *graph, const ort_node *conv, int axis)
{
    const ort_graph_value *w =
        conv->input_count > 1 ? ort_graph_value_at(graph, conv->inputs[1]) : NULL;
    if (!w || w->fact.type.kind != ORT_TYPE_TENSOR || w->fact.type.rank != 4 ||
        !ort_dim_known(w->fact.type.dim[axis]))
        return 0;
    return w->fact.type.dim[axis].size;
}

/* The convolution whose maps come here through pools and the like; NULL: none. */
static const ort_node *conv_before(const ort_graph *graph, const ort_node *node)
{
    do
        node = producer_of(graph, node->inputs[0]);
    while (node && !strcmp(node->domain, NCHWC) && !is_ours(node, "Conv") && node->input_count);
    return node && is_ours(node, "Conv") ? node : NULL;
}

/* What one node tells: 8, 16 or 0. */
static int64_t block_told(const ort_graph *graph, const ort_node *node)
{
    if (is_ours(node, "Conv")) {
        int64_t maps = weight_dim(graph, node, 0), channels = weight_dim(graph, node, 1);
        const ort_node *before = producer_of(graph, node->inputs[0]);
        bool blocked = before && (is_ours(before, "Conv") || is_ours(before, "ReorderInput"));
        if (maps % 16 || (channels > 1 && channels % 16 && (blocked || channels > 16)))
            return 8;
        return channels >= 8 && channels < 16 ? 16 : 0; /* too few for a block: plain input */
    }
    if (is_ours(node, "ReorderOutput")) {
        const ort_node *before = conv_before(graph, node);
        int64_t maps = before ? weight_dim(graph, before, 0) : 0;
        int64_t channels = ort_node_int(node, "channels", maps);
        return channels >= 0 && maps - channels >= 8 ? 16 : 0;
    }
    return 0;
}

int64_t ort_nchwc_block(const ort_graph *graph)
{
    int64_t block = 0;
    for (; graph && !block; graph = graph->parent) {
        const ort_node *node;
        ORT_EACH_NODE(graph, node)
            if (!block)
                block = block_told(graph, node);
    }
    return block ? block : ort_cpu_get()->avx512 ? 16 : 8;
}

/* ---- filters */

ort_status ort_nchwc_weights(const ort_blocked_state *s, const ort_tensor *from, ort_tensor *to,
                             ort_error *err)
{
    int64_t taps = s->kernel[0] * s->kernel[1], block = s->block;
    int64_t inner = s->plain || s->depthwise ? 1 : block;
    size_t bytes = ort_tensor_bytes(from);
    const char *at = from->data;
    if (s->maps % block || s->channels % inner)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "the filter is for %lld and %lld channels, not whole blocks of %lld",
                             (long long)s->maps, (long long)s->channels, (long long)block);
    float *out = malloc(bytes + 1);
    if (!out)
        return ort_error_memory(err, bytes);
    *to = *from;
    to->data = out;
    for (int64_t o = 0; o < s->maps; o += block)
        for (int64_t i = 0; i < s->channels; i += inner)
            for (int64_t t = 0; t < taps; t++)
                for (int64_t bi = 0; bi < inner; bi++)
                    for (int64_t bo = 0; bo < block; bo++, at += sizeof(float))
                        memcpy(&out[((o + bo) * s->channels + i + bi) * taps + t], at,
                               sizeof(float));
    return ORT_OK;
}
