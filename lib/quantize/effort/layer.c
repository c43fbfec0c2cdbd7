/* layer.c - rows are gathered a few at a time, and multiplied with each other in tasks that own
 * lines of the square, so that sums don't depend on the number of threads.
 */
#include "quantize/effort/layer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "quantize/place/place.h"

enum { VECTOR = 16, BLOCK = 64 };

static const ort_tensor *fact(const ort_graph *graph, ort_id id)
{
    return id == ORT_ID_NONE ? NULL : graph->values.data[id]->fact.value;
}

/* ---- geometry */

static void pair_of(const ort_node *node, const char *name, int from, int64_t otherwise,
                    int rank, int64_t out[2])
{
    size_t count = 0;
    const int64_t *v = ort_node_ints(node, name, &count);
    out[0] = out[1] = otherwise;
    for (int i = 0; i < rank && v && count > (size_t)(from + i); i++)
        out[2 - rank + i] = v[from + i];
}

static bool windows_of(const ort_node *node, const ort_tensor *w, ort_layer *l)
{
    const int rank = w->shape.rank - 2;
    const char *pads = ort_node_string(node, "auto_pad", "NOTSET");
    if (rank < 1 || rank > 2 || (strcmp(pads, "NOTSET") && strcmp(pads, "VALID")))
        return false;
    l->windows = true;
    l->groups = ort_node_int(node, "group", 1);
    l->filters = w->shape.dim[0] / l->groups;
    l->channels = w->shape.dim[1];
    l->kernel[0] = rank == 2 ? w->shape.dim[2] : 1;
    l->kernel[1] = w->shape.dim[rank + 1];
    pair_of(node, "strides", 0, 1, rank, l->stride);
    pair_of(node, "dilations", 0, 1, rank, l->dilation);
    pair_of(node, "pads", 0, 0, rank, l->pad);
    pair_of(node, "pads", rank, 0, rank, l->pad_end);
    if (rank == 1) {
        l->stride[0] = l->dilation[0] = 1;
        l->pad[0] = l->pad_end[0] = 0;
    }
    l->length = l->channels * l->kernel[0] * l->kernel[1];
    l->filter_step = l->length;
    l->number_step = 1;
    return true;
}

static bool matrix_of(const ort_node *node, const ort_tensor *w, ort_layer *l)
{
    bool gemm = ort_edit_is(node, ONNX, "Gemm");
    bool rows = gemm && ort_node_int(node, "transB", 0);
    if (w->shape.rank != 2 || (gemm && (ort_node_float(node, "alpha", 1) != 1 ||
                                        ort_node_float(node, "beta", 1) != 1)))
        return false;
    l->groups = 1;
    l->filters = w->shape.dim[rows ? 0 : 1];
    l->length = w->shape.dim[rows ? 1 : 0];
    l->filter_step = rows ? l->length : 1;
    l->number_step = rows ? 1 : l->filters;
    return true;
}

/* What holds the same numbers and is computed. */
static ort_id shown(const ort_graph *graph, ort_id id)
{
    const ort_node *from = ort_edit_producer(graph, id);
    while (from && from->op && (from->op->traits & ORT_TRAIT_ALIAS)) {
        id = from->inputs[0];
        from = ort_edit_producer(graph, id);
    }
    return id;
}

static bool input_of(const ort_graph *graph, ort_id id, ort_layer *l)
{
    const ort_type *type = &graph->values.data[id]->fact.type;
    ort_id source = shown(graph, id);
    l->input = graph->values.data[source]->name;
    if (source == id || !l->windows)
        return true;
    l->declared.rank = type->rank;
    for (int i = 1; i < type->rank; i++) {
        if (type->dim[i].size <= 0)
            return false;
        l->declared.dim[i] = type->dim[i].size;
    }
    return true;
}

bool ort_layer_of(ort_graph *floats, ort_graph *codes, ort_id id, ort_layer *l)
{
    const ort_node *was = floats->nodes.data[id];
    ort_node *node = codes->nodes.data[id];
    ort_place_product product;
    *l = (ort_layer){.graph = codes, .node = node};
    if (was->removed || node->removed || strcmp(was->op_type, node->op_type) ||
        !ort_place_is_product(floats, was, &product) || ort_edit_is(was, ONNX, "ConvTranspose"))
        return false;
    const ort_tensor *w = ort_graph_weight(floats, was->inputs[product.weight]);
    const ort_node *from = ort_edit_producer(codes, node->inputs[product.weight]);
    if (!w || w->dtype != ORT_DTYPE_FLOAT || !w->data || !from || from->input_count < 2 ||
        !ort_edit_is(from, ONNX, "DequantizeLinear") ||
        codes->values.data[from->outputs[0]]->use_count != 1)
        return false;
    const ort_tensor *c = fact(codes, from->inputs[0]);
    l->scales = fact(codes, from->inputs[1]);
    const ort_id zeros = ort_edit_input(from, 2);
    l->zeros = zeros == ORT_ID_NONE ? NULL : fact(codes, zeros);
    if (!c || !c->data || !l->scales || l->scales->shape.rank > 1 ||
        (zeros != ORT_ID_NONE && !l->zeros) ||
        codes->values.data[from->inputs[0]]->use_count != 1)
        return false;
    l->codes = *c;
    l->weight = w->data;
    l->bias = ort_edit_is(was, ONNX, "MatMul") ? -1 : 2;
    if (!(ort_edit_is(was, ONNX, "Conv") ? windows_of(was, w, l) : matrix_of(was, w, l)))
        return false;
    l->width = (l->length + VECTOR - 1) / VECTOR * VECTOR;
    return input_of(floats, was->inputs[0], l);
}

/* ---- rows */

ort_status ort_layer_begin(ort_layer *l, ort_error *err)
{
    l->square = calloc((size_t)(l->groups * l->length * l->width) + 1, sizeof *l->square);
    l->sum = calloc((size_t)(l->groups * l->width) + 1, sizeof *l->sum);
    l->rows = 0;
    return l->square && l->sum ? ORT_OK : ort_error_memory(err, ort_layer_bytes(l));
}

void ort_layer_end(ort_layer *l)
{
    free(l->square);
    free(l->sum);
    l->square = NULL;
    l->sum = NULL;
}

typedef struct block {
    ort_layer *layer;
    const ort_tensor *x;
    int64_t dims[4];     /* N, channels of all groups, height, width; or rows and length */
    int64_t out[2];
    int64_t count;       /* rows here */
    int64_t at[BLOCK];   /* which of all rows */
    float *rows;         /* [groups][BLOCK][width] */
} block;

static void gather_window(const block *b, int64_t group, int64_t row, float *to)
{
    const ort_layer *l = b->layer;
    const int64_t x0 = row % b->out[1] * l->stride[1] - l->pad[1];
    const int64_t y0 = row / b->out[1] % b->out[0] * l->stride[0] - l->pad[0];
    const int64_t n = row / (b->out[0] * b->out[1]);
    for (int64_t c = 0; c < l->channels; c++) {
        const float *plane = (const float *)b->x->data +
                             (n * b->dims[1] + group * l->channels + c) * b->dims[2] * b->dims[3];
        for (int64_t i = 0; i < l->kernel[0]; i++)
            for (int64_t k = 0; k < l->kernel[1]; k++) {
                int64_t y = y0 + i * l->dilation[0], x = x0 + k * l->dilation[1];
                bool in = y >= 0 && y < b->dims[2] && x >= 0 && x < b->dims[3];
                *to++ = in ? plane[y * b->dims[3] + x] : 0;
            }
    }
}

static void gather(const block *b)
{
    const ort_layer *l = b->layer;
    for (int64_t g = 0; g < l->groups; g++)
        for (int64_t r = 0; r < b->count; r++) {
            float *to = b->rows + (g * BLOCK + r) * l->width;
            if (l->windows)
                gather_window(b, g, b->at[r], to);
            else
                memcpy(to, (const float *)b->x->data + b->at[r] * l->length,
                       (size_t)l->length * sizeof *to);
            for (int64_t k = 0; k < l->length; k++)
                l->sum[g * l->width + k] += (double)to[k];
        }
}

/* One line of one group's square, from its diagonal on. */
static void add_line(void *arg, size_t task, int thread)
{
    const block *b = arg;
    const ort_layer *l = b->layer;
    const int64_t g = (int64_t)task / l->length, i = (int64_t)task % l->length;
    float *line = l->square + (int64_t)task * l->width;
    (void)thread;
    for (int64_t r = 0; r < b->count; r++) {
        const float *row = b->rows + (g * BLOCK + r) * l->width;
        const float v = row[i];
        for (int64_t k = i / VECTOR * VECTOR; k < l->width && v != 0; k += VECTOR)
            for (int j = 0; j < VECTOR; j++)
                line[k + j] += v * row[k + j];
    }
}

/* The number of rows of a value; 0: not of a shape that fits. */
static int64_t measure(block *b)
{
    const ort_layer *l = b->layer;
    const ort_shape *s = l->declared.rank ? &l->declared : &b->x->shape;
    const int64_t count = ort_tensor_count(b->x);
    if (!l->windows)
        return count / l->length;
    if (s->rank < 3 || s->rank > 4)
        return 0;
    b->dims[1] = s->dim[1];
    b->dims[2] = s->rank == 4 ? s->dim[2] : 1;
    b->dims[3] = s->dim[s->rank - 1];
    int64_t each = b->dims[1] * b->dims[2] * b->dims[3];
    if (each <= 0 || b->dims[1] != l->groups * l->channels)
        return 0;
    for (int i = 0; i < 2; i++) {
        int64_t reach = (l->kernel[i] - 1) * l->dilation[i] + 1;
        int64_t room = b->dims[2 + i] + l->pad[i] + l->pad_end[i] - reach;
        b->out[i] = room < 0 ? 0 : room / l->stride[i] + 1;
    }
    return count / each * b->out[0] * b->out[1];
}

int64_t ort_layer_rows(ort_layer *l, const ort_tensor *x)
{
    block b = {.layer = l, .x = x};
    return measure(&b);
}

ort_status ort_layer_read(ort_layer *l, const ort_tensor *x, int64_t most, ort_pool *pool,
                          ort_error *err)
{
    block b = {.layer = l, .x = x};
    const int64_t rows = measure(&b), taken = rows < most ? rows : most;
    b.rows = calloc((size_t)(l->groups * BLOCK * l->width) + 1, sizeof *b.rows);
    if (!b.rows)
        return ort_error_memory(err, (size_t)(l->groups * BLOCK * l->width) * sizeof *b.rows);
    for (int64_t from = 0; from < taken; from += BLOCK) {
        b.count = taken - from < BLOCK ? taken - from : BLOCK;
        for (int64_t r = 0; r < b.count; r++)
            b.at[r] = (2 * (from + r) + 1) * rows / (2 * taken);
        gather(&b);
        ort_pool_run(pool, (size_t)(l->groups * l->length), add_line, &b);
    }
    l->rows += taken;
    free(b.rows);
    return ORT_OK;
}
