/* pad_conv.c - what Pad puts around the space becomes the pads of the Conv or pool after it: the
 * padded copy of the input is never made.
 *
 *     Conv            zeros
 *     AveragePool     zeros that count: count_include_pad
 *     MaxPool         the lowest number, or zeros where nothing is below zero
 *
 * Pads of a pool are smaller than its window, so that no window sees nothing else.
 *
 * In a file the Pad stays before a 2D Conv with a kernel longer than 7: with long kernels
 * onnxruntime's blocked Conv takes longer for pads of its own than Pad and Conv together do,
 * 1.3 times with 9x9 on 32x32, 1.8 with 15x15 on 16x16, 4 with 64x1 on a column of 256; with
 * 7x7 it is 0.99 to 1.28, with 3x3 0.65 to 0.84 (1.31.1, one thread, up to 64 channels). Some
 * such Pads it joins with their Conv itself: then the file is as slow as its source, never
 * slower.
 */
#include <float.h>
#include <string.h>

#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

#define FILE_KERNEL_MAX 7 /* see the top */

/* The amounts of a Pad of a constant as [begin..., end...] over all axes; false when it is anything
 * else. */
static bool constant_pads(const ort_graph *graph, const ort_node *pad, int rank, int64_t *pads,
                          double *number)
{
    *number = pad->opset < 11 ? (double)ort_node_attr_float(pad, "value") : 0;
    return ort_node_attr_is(pad, "mode", "constant") &&
           ort_fact_pads(graph, pad, rank, pads) &&
           (pad->opset < 11 || ort_edit_input(pad, 2) == ORT_ID_NONE ||
            ort_fact_number(graph, pad, 2, number));
}

/* The Conv's own pads plus those of the Pad; false when channels or batch are padded, or cut. */
static bool sum_pads(const ort_node *conv, const int64_t *pads, int rank, int64_t *sum)
{
    size_t count = 0;
    const int64_t *own = ort_node_ints(conv, "pads", &count);
    int space = rank - 2;
    if (ort_node_attr_is(conv, "auto_pad", "VALID"))
        count = 0;
    else if (!ort_node_attr_is(conv, "auto_pad", "NOTSET") ||
             (count && count != (size_t)space * 2))
        return false;
    for (int i = 0; i < 2 * rank; i++) {
        int axis = i % rank;
        if (pads[i] < 0 || pads[i] > INT32_MAX || (axis < 2 && pads[i]))
            return false;
        if (axis >= 2) {
            int at = (i / rank) * space + axis - 2;
            sum[at] = pads[i] + (count ? own[at] : 0);
        }
    }
    return true;
}

static bool is_conv(const ort_node *node)
{
    return ort_edit_is_any(node, "Conv|ms.FusedConv");
}

static bool is_window(const ort_node *node)
{
    return ort_edit_is_any(node, "Conv|ms.FusedConv|MaxPool|AveragePool");
}

/* Is nothing below zero? */
static bool is_positive(const ort_graph *graph, ort_id id)
{
    return ort_edit_is_any(ort_edit_producer(graph, id), "Relu|Sigmoid");
}

/* Why a pool can't take these pads of this number; NULL: it can. */
static const char *pool_refuses(const ort_graph *graph, const ort_node *pool, const ort_node *pad,
                                const int64_t *sum, double number)
{
    size_t count = 0;
    const int64_t *kernel = ort_node_ints(pool, "kernel_shape", &count);
    for (size_t i = 0; i < 2 * count; i++)
        if (sum[i] >= kernel[i % count])
            return "a window would see pads alone";
    if (!kernel || ort_node_attr_int(pool, "ceil_mode") || !ort_fact_ints_are(pool, "dilations", 1))
        return "the pool rounds up or has gaps";
    if (ort_edit_is(pool, ONNX, "AveragePool")) {
        if (number != 0 || pool->opset < 7)
            return "its number isn't zero";
        return ort_node_attr_int(pool, "count_include_pad") || ort_fact_ints_are(pool, "pads", 0)
                   ? NULL
                   : "the pool's own pads don't count";
    }
    if (pool->output_count > 1 && pool->outputs[1] != ORT_ID_NONE)
        return "the pool's indices count the pads";
    return number <= -(double)FLT_MAX || (number == 0 && is_positive(graph, pad->inputs[0]))
               ? NULL
               : "its number may be the largest";
}

/* Does a file keep this Pad, since others run the Conv with a kernel so long slower? */
static bool stays_in_file(const ort_pass_context *c, const ort_node *conv)
{
    const ort_type *kernel = ort_fact_type(c->graph, conv->inputs[1]);
    if (!c->portable || ort_type_rank(kernel) != 4)
        return false;
    for (int i = 2; i < kernel->rank; i++)
        if (ort_dim_known(kernel->dim[i]) && kernel->dim[i].size > FILE_KERNEL_MAX)
            return true;
    return false;
}

static ort_status take_pads(ort_pass_context *c, ort_node *pad, ort_node *window,
                            const int64_t *sum, int space, ort_error *err)
{
    ort_attr pads = ort_attr_ints("pads", sum, space * 2);
    ort_attr counts = ort_attr_int("count_include_pad", 1);
    ort_attr mode = ort_attr_string("auto_pad", "NOTSET");
    ort_node_set_input(c->graph, window, 0, pad->inputs[0]);
    window->origin = ort_edit_origin(c->graph, pad, window);
    ort_graph_remove_node(c->graph, pad);
    if (ort_edit_is(window, ONNX, "AveragePool"))
        ORT_TRY(ort_node_set_attr(c->graph, window, &counts, err));
    if (!ort_node_attr_is(window, "auto_pad", "NOTSET"))
        ORT_TRY(ort_node_set_attr(c->graph, window, &mode, err));
    return ort_edit_set_attr(c->graph, window, &pads, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *pad;
    ORT_PASS_EACH_NODE(c->graph, pad)
    {
        int64_t pads[2 * ORT_MAX_RANK], sum[2 * ORT_MAX_RANK];
        double number;
        const char *why = NULL;
        if (!ort_edit_is(pad, ONNX, "Pad"))
            continue;
        ort_node *window = ort_edit_only_reader(c->graph, pad->outputs[0]);
        const ort_type *in = ort_fact_tensor(c->graph, pad->inputs[0]);
        int rank = in ? in->rank : -1;
        if (!is_window(window) || window->inputs[0] != pad->outputs[0] || rank < 3)
            continue;
        if (!constant_pads(c->graph, pad, rank, pads, &number) ||
            !sum_pads(window, pads, rank, sum))
            why = "it does more than put a constant around the space";
        else if (!is_conv(window))
            why = pool_refuses(c->graph, window, pad, sum, number);
        else if (number != 0)
            why = "its number isn't zero";
        else if (stays_in_file(c, window))
            why = "onnxruntime is slower when a Conv with a long kernel pads";
        if (why) {
            ort_pass_note(c, pad, "%s", why);
            continue;
        }
        ORT_TRY(take_pads(c, pad, window, sum, rank - 2, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_pad_conv = {
    .name = "pad_conv",
    .level = 1,
    .doc = "what a Pad puts around the space becomes pads of the Conv or pool after it",
    .apply = apply,
};
