/* opencl_parts.h - what the families of rows share: activations, products, strides. */
#ifndef ORT_PROVIDER_OPENCL_OPENCL_PARTS_H
#define ORT_PROVIDER_OPENCL_OPENCL_PARTS_H

#include "provider/opencl/opencl.h"

#define ORT_CL_AXES 6

/* What kernels apply to their result (activate() of common.cl). */
typedef struct ort_cl_activation {
    int64_t kind;
    double a, b;
} ort_cl_activation;

/* That of attribute `activation`; false: no kernel has it. */
bool ort_cl_find_activation(const ort_node *node, ort_cl_activation *activation);
/* That which an operator of one operand is. */
bool ort_cl_next_activation(const ort_cl_plan *p, const ort_device_step *step,
                            ort_cl_activation *activation);
/* That of a step: its attribute's, or the operator's behind it. */
ort_cl_activation ort_cl_activation_of(const ort_cl_step *s);

/* Where an element lies: start, and a step for each of two batch axes, rows, columns. */
typedef struct ort_cl_matrix {
    int buffer;
    int64_t start, batch1, batch2, row, column;
} ort_cl_matrix;

static inline ort_cl_matrix ort_cl_no_matrix(void)
{
    return (ort_cl_matrix){.buffer = -1};
}

typedef struct ort_cl_norm { /* of whole rows of a product, by its items (gemm.cl) */
    int kind;                /* 0: none; 1: by the root of the mean square, 2: about the mean */
    int skip, more, scale, shift, out; /* buffers; below 0: none */
    double epsilon;
} ort_cl_norm;

typedef struct ort_cl_product { /* Y = activation(alpha A B + beta C), M x K by K x N */
    ort_cl_matrix a, b, c, y;   /* c.buffer < 0: none; y.buffer < 0: output 0; y.column is 1 */
    int b_input;                /* of the node, which is B; -1: b.buffer is */
    const ort_node *const *nodes; /* whose inputs these are, batch2 of them; NULL: of the step's */
    int64_t batch1, batch2, m, n, k;
    double alpha, beta;
    ort_cl_activation activation;
    /* Finds a norm of Y's rows that the items make (ort_cl_norm_behind), where y.buffer is below 0;
     * NULL: none. */
    bool (*find_norm)(ort_cl_step *s, int64_t count, ort_cl_norm *norm, int *to);
} ort_cl_product;

/* How many of so many rows one item makes, where they are tiles in registers (of the step's form):
 * enough to use a panel often, few enough that all units have work. others: how many items there
 * are for each. */
int64_t ort_cl_rows_of_item(const ort_cl_step *s, int64_t rows, int64_t others);
static inline const ort_cl_tile *ort_cl_tile_of(const ort_cl_step *s)
{
    return &s->plan->device->tiles[s->tiles];
}
void ort_cl_multiply(ort_cl_step *s, const ort_cl_product *p);
/* opencl_norm.c: the norm that alone reads output 0, an array of rows of `count` elements, if all
 * that it reads besides is there; its step is made then. to: where rows are written before. */
bool ort_cl_norm_behind(ort_cl_step *s, int64_t count, ort_cl_norm *norm, int *to);
/* Gather of a constant list of indices. */
ort_status ort_cl_gather_table(ort_cl_step *s, ort_error *err);
/* SpaceToDepth and the Gather of channels that alone reads it, as one launch; taken: is it one? */
ort_status ort_cl_take_blocks(ort_cl_step *s, bool *taken, ort_error *err);
/* Softmax over `count` elements that lie `step` apart, of `rows` such rows. */
void ort_cl_softmax_rows(ort_cl_step *s, int from, int to, int64_t rows, int64_t count,
                         int64_t step, bool as_log);

/* An array of up to six axes, and strides in elements of two operands. */
typedef struct ort_cl_walk {
    int64_t n[ORT_CL_AXES], x[ORT_CL_AXES], y[ORT_CL_AXES];
} ort_cl_walk;

/* Strides with which a tensor of `type` is read along `rank` axes; 0 where it is spread. */
void ort_cl_spread(const ort_type *type, int rank, int64_t *stride);
/* Axes that lie one behind the other in both operands become one. */
void ort_cl_join_axes(ort_cl_walk *walk);
/* A walk of the shape of `type`, with n 1 in front, strides 0. */
ort_cl_walk ort_cl_walk_of(const ort_type *type);

/* Elements of a walk, x in the source from `first` on, y in the result from `at` on. */
void ort_cl_move_with(ort_cl_step *s, const char *kernel, int from, int to, ort_cl_walk w,
                      int64_t first, int64_t at);
static inline void ort_cl_move(ort_cl_step *s, int from, int to, ort_cl_walk w, int64_t first,
                               int64_t at)
{
    ort_cl_move_with(s, "move", from, to, w, first, at);
}
static inline ort_dtype ort_cl_type(const ort_graph *graph, const ort_node *node, int input)
{
    return graph->values.data[node->inputs[input]]->fact.type.dtype;
}

/* Is the input absent, or will a plan know its value? */
bool ort_cl_is_given(const ort_graph *graph, const ort_node *node, int input);
/* Is an input there? */
static inline bool ort_cl_has(const ort_node *node, int input)
{
    return input < node->input_count && node->inputs[input] != ORT_ID_NONE;
}
static inline bool ort_cl_gives(const ort_node *node, int output)
{
    return output < node->output_count && node->outputs[output] != ORT_ID_NONE;
}
static inline int ort_cl_rank(const ort_graph *graph, const ort_node *node, int input)
{
    return graph->values.data[node->inputs[input]]->fact.type.rank;
}
/* Are all inputs that are there float? */
bool ort_cl_floats(const ort_graph *graph, const ort_node *node);

#endif
