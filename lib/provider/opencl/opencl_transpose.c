/* opencl_transpose.c - ConvTranspose: a product of turned filters and the input gives what pixels
 * add to each output they reach, [group, outs * taps, pixels]; then each output adds up what
 * reaches it.
 */
#include "op/shared/window.h"
#include "provider/opencl/opencl_parts.h"

static bool claim_transpose(const ort_graph *graph, const ort_node *node, const char **why)
{
    int rank = ort_cl_rank(graph, node, 0);
    *why = "windows of more than three axes have no kernel";
    return ort_cl_floats(graph, node) && rank >= 3 && rank <= 5;
}

typedef struct turned { /* three axes, those in front of size 1 */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], begin[3];
} turned;

static ort_status read_window(const ort_cl_step *s, turned *t, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0), *w = ort_cl_in(s, 1), *y = ort_cl_out(s, 0);
    int rank = x->type.rank - 2;
    size_t extra_count = 0;
    const int64_t *extra = ort_node_ints(s->node, "output_padding", &extra_count);
    ort_window_spec spec = {0};
    ORT_TRY(ort_window_read(s->node, &spec, err));
    *t = (turned){{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}};
    for (int d = 0; d < rank; d++) {
        int at = 3 - rank + d;
        t->in[at] = ort_cl_dim(x, d + 2);
        t->out[at] = ort_cl_dim(y, d + 2);
        t->kernel[at] = ort_cl_dim(w, d + 2);
        t->stride[at] = d < spec.rank && spec.stride[d] ? spec.stride[d] : 1;
        t->dilation[at] = d < spec.rank && spec.dilation[d] ? spec.dilation[d] : 1;
        int64_t reach = (t->in[at] - 1) * t->stride[at] +
                        (t->kernel[at] - 1) * t->dilation[at] + 1 +
                        (d < (int)extra_count ? extra[d] : 0);
        int64_t cut = reach - t->out[at]; /* of padding in front and behind */
        size_t shapes = 0;
        (void)ort_node_ints(s->node, "output_shape", &shapes);
        bool lower = spec.auto_pad == ORT_PAD_SAME_LOWER;
        t->begin[at] = spec.auto_pad == ORT_PAD_EXPLICIT && !shapes ? spec.begin[d]
                       : spec.auto_pad == ORT_PAD_VALID             ? 0
                       : lower || (shapes && spec.auto_pad == ORT_PAD_EXPLICIT) ? (cut + 1) / 2
                                                                                : cut / 2;
    }
    return ORT_OK;
}

static ort_status emit_transpose(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0), *y = ort_cl_out(s, 0);
    turned t;
    ORT_TRY(read_window(s, &t, err));
    int64_t groups = ort_node_int(s->node, "group", 1), images = ort_cl_dim(x, 0);
    int64_t ins = ort_cl_dim(x, 1) / groups, outs = ort_cl_dim(y, 1) / groups;
    int64_t taps = t.kernel[0] * t.kernel[1] * t.kernel[2], pixels = t.in[0] * t.in[1] * t.in[2];
    int64_t rows = outs * taps;
    int parts = ort_cl_scratch(s, images * groups * rows * pixels);
    bool bias = ort_cl_has(s->node, 2);
    ort_cl_product p = {.batch1 = images, .batch2 = groups, .m = rows, .n = pixels, .k = ins,
                        .b_input = -1, .c = ort_cl_no_matrix(), .alpha = 1};
    p.a = (ort_cl_matrix){ort_cl_read(s, 1), 0, 0, ins * rows, 1, rows};
    p.b = (ort_cl_matrix){ort_cl_read(s, 0), 0, groups * ins * pixels, ins * pixels, pixels, 1};
    p.y = (ort_cl_matrix){parts, 0, groups * rows * pixels, rows * pixels, pixels, 1};
    ort_cl_multiply(s, &p);
    const int64_t grid[3] = {ort_cl_along(s, t.out[2]), t.out[0] * t.out[1],
                             images * groups * outs};
    ort_cl_launch_grid(s, "conv", "gather", grid, NULL, "bbbiiiiiiiiiiiiiiiiiii", parts,
                       bias ? ort_cl_read(s, 2) : parts, ort_cl_write(s, 0), (int64_t)bias,
                       groups * outs, t.in[0], t.in[1], t.in[2], t.out[1], t.out[2], t.kernel[0],
                       t.kernel[1], t.kernel[2], t.stride[0], t.stride[1], t.stride[2], t.begin[0],
                       t.begin[1], t.begin[2], t.dilation[0], t.dilation[1], t.dilation[2]);
    return ORT_OK;
}

const ort_cl_row ort_cl_transpose_rows[] = {
    {ONNX, "ConvTranspose", claim_transpose, emit_transpose, .half = true},
    {0},
};
