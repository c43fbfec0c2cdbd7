/* channel_move.c - sources, what carries their channels on, and readers; constants scaled. */
#include "quantize/channels/channel_move.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "graph/uses.h"
#include "op/edit.h"

/* f(s x) = s f(x) for s > 0, whatever the channel. */
static const char by_elements[] = "Relu|LeakyRelu|PRelu|Identity";
static const char by_planes[] = "MaxPool|AveragePool|GlobalAveragePool|GlobalMaxPool";

/* ---- constants */

/* A float constant that this node alone reads. */
static const ort_tensor *own(const ort_graph *graph, const ort_node *node, int slot)
{
    if (slot >= node->input_count || node->inputs[slot] == ORT_ID_NONE)
        return NULL;
    const ort_graph_value *v = graph->values.data[node->inputs[slot]];
    const ort_tensor *t = v->fact.value;
    return t && t->data && t->dtype == ORT_DTYPE_FLOAT && v->use_count == 1 && !v->is_output &&
                   !v->is_input && ort_tensor_count(t) > 0
               ? t
               : NULL;
}

static bool is_absent(const ort_node *node, int slot)
{
    return slot >= node->input_count || node->inputs[slot] == ORT_ID_NONE;
}

static bool add(ort_channel_parts *parts, ort_node *node, int slot, int axis, int64_t groups,
                bool weight)
{
    const ort_channel_part part = {node, slot, axis, groups, weight};
    for (size_t i = 0; i < parts->count; i++) /* readers may come twice */
        if (parts->data[i].node == node && parts->data[i].slot == slot)
            return true;
    return ort_vec_push(parts, part);
}

/* A vector of one number a channel. */
static bool add_vector(ort_channel_move *m, ort_node *node, int slot)
{
    const ort_tensor *t = own(m->graph, node, slot);
    if (!t || t->shape.rank != 1 || (m->channels && t->shape.dim[0] != m->channels))
        return false;
    m->channels = t->shape.dim[0];
    return add(&m->sources, node, slot, 0, 1, false);
}

/* ---- sources */

static bool product_source(ort_channel_move *m, ort_node *node)
{
    const ort_tensor *w = own(m->graph, node, 1);
    const bool conv = ort_edit_is(node, ONNX, "Conv"), gemm = ort_edit_is(node, ONNX, "Gemm");
    if (!w || (!conv && w->shape.rank != 2) || w->shape.rank < 2)
        return false;
    const int axis = conv || (gemm && ort_node_int(node, "transB", 0)) ? 0 : 1;
    m->axis = conv ? 1 : -1;
    m->channels = w->shape.dim[axis];
    m->from_product = true;
    return add(&m->sources, node, 1, axis, 1, true) &&
           (is_absent(node, 2) || add_vector(m, node, 2));
}

static bool norm_source(ort_channel_move *m, ort_node *node)
{
    const ort_type *type = ort_fact_type(m->graph, node->inputs[0]);
    const int rank = ort_type_rank(type);
    const int64_t axis = ort_node_int(node, "axis", -1);
    m->axis = -1;
    return rank > 0 && (axis == -1 || axis == rank - 1) && add_vector(m, node, 1) &&
           (is_absent(node, 2) || add_vector(m, node, 2));
}

/* The slot of a constant vector, the other being computed; -1: it has none. */
static int vector_slot(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < 2; i++) {
        const ort_tensor *t = own(graph, node, i);
        const ort_type *other = ort_fact_type(graph, node->inputs[1 - i]);
        if (t && t->shape.rank == 1 && ort_type_rank(other) > 1 &&
            ort_dim_is(other->dim[other->rank - 1], t->shape.dim[0]))
            return i;
    }
    return -1;
}

/* x W + b, x g + b, or x g. */
static bool spelled_source(ort_channel_move *m, ort_node *node)
{
    const int slot = vector_slot(m->graph, node);
    m->axis = -1;
    if (slot < 0 || !add_vector(m, node, slot))
        return false;
    if (ort_edit_is(node, ONNX, "Mul"))
        return true;
    ort_node *before = ort_edit_producer(m->graph, node->inputs[1 - slot]);
    if (!before || ort_edit_only_reader(m->graph, node->inputs[1 - slot]) != node)
        return false;
    const int64_t channels = m->channels;
    if (ort_edit_is(before, ONNX, "MatMul"))
        return product_source(m, before) && m->channels == channels;
    const int scale = ort_edit_is(before, ONNX, "Mul") ? vector_slot(m->graph, before) : -1;
    return scale >= 0 && add_vector(m, before, scale);
}

static bool source_of(ort_channel_move *m, ort_node *node)
{
    if (ort_edit_is_any(node, "Conv|Gemm|MatMul"))
        return product_source(m, node);
    if (ort_edit_is_any(node, "LayerNormalization|RMSNormalization|SimplifiedLayerNormalization"))
        return norm_source(m, node);
    return ort_edit_is_any(node, "Add|Mul") && spelled_source(m, node);
}

/* ---- readers */

static bool product_reader(ort_channel_move *m, ort_node *node, ort_id value, int axis)
{
    const ort_tensor *w = own(m->graph, node, 1);
    const bool conv = ort_edit_is(node, ONNX, "Conv"), gemm = ort_edit_is(node, ONNX, "Gemm");
    if (!w || node->inputs[0] != value || w->shape.rank < 2 || conv != (axis == 1))
        return false;
    if (conv) {
        const int64_t groups = ort_node_int(node, "group", 1);
        return groups > 0 && w->shape.dim[0] % groups == 0 &&
               w->shape.dim[1] * groups == m->channels && add(&m->readers, node, 1, 1, groups,
                                                              true);
    }
    const int along = gemm && ort_node_int(node, "transB", 0) ? 1 : 0;
    if (w->shape.rank != 2 || (gemm && ort_node_int(node, "transA", 0)) ||
        w->shape.dim[along] != m->channels)
        return false;
    return add(&m->readers, node, 1, along, 1, true);
}

/* [N, C, 1, 1] to [N, C]: the channels are the last axis from there on. */
static bool drops_ones(const ort_channel_move *m, const ort_node *node)
{
    const ort_type *from = ort_fact_type(m->graph, node->inputs[0]);
    const ort_type *to = ort_fact_type(m->graph, node->outputs[0]);
    if (!ort_edit_is_any(node, "Flatten|Reshape|Squeeze") || ort_type_rank(from) < 3 ||
        ort_type_rank(to) != 2 || !ort_dim_is(from->dim[1], m->channels) ||
        !ort_dim_is(to->dim[1], m->channels))
        return false;
    for (int i = 2; i < from->rank; i++)
        if (!ort_dim_is(from->dim[i], 1))
            return false;
    return true;
}

/* As its first input and no other. */
static bool reads_first(const ort_node *node, ort_id value)
{
    bool reads = node->input_count > 0 && node->inputs[0] == value && node->body_count == 0;
    for (int i = 1; i < node->input_count; i++)
        reads = reads && node->inputs[i] != value;
    for (int o = 1; o < node->output_count; o++)
        reads = reads && node->outputs[o] == ORT_ID_NONE;
    return reads && node->output_count > 0;
}

static bool collect(ort_channel_move *m, ort_id value, int axis, int depth)
{
    enum { DEEPEST = 24 };
    ort_readers readers = ort_readers_of(m->graph, value);
    ort_node *node;
    bool any = false;
    if (depth > DEEPEST || m->graph->values.data[value]->is_output)
        return false;
    for (; (node = ort_readers_next(&readers)); any = true) {
        int then = axis;
        if (!reads_first(node, value))
            return false;
        if (ort_edit_is_any(node, "Conv|Gemm|MatMul")) {
            if (m->value == ORT_ID_NONE)
                m->value = value;
            if (!product_reader(m, node, value, axis))
                return false;
            continue;
        }
        if (axis == 1 && drops_ones(m, node))
            then = -1;
        else if (!ort_edit_is_any(node, by_elements) &&
                 !(axis == 1 && ort_edit_is_any(node, by_planes)))
            return false;
        if (!collect(m, node->outputs[0], then, depth + 1))
            return false;
    }
    return any;
}

bool ort_channel_move_from(ort_graph *graph, ort_node *node, ort_channel_ids *made,
                           ort_channel_move *m)
{
    *m = (ort_channel_move){.graph = graph, .value = ORT_ID_NONE, .foldable = true, .made = made};
    return node->output_count >= 1 && node->outputs[0] != ORT_ID_NONE && source_of(m, node) &&
           m->channels > 1 && collect(m, node->outputs[0], m->axis, 0);
}

bool ort_channel_move_before(ort_graph *graph, ort_id value, ort_channel_ids *made,
                             ort_channel_move *m)
{
    const ort_type *type = ort_fact_tensor(graph, value);
    *m = (ort_channel_move){.graph = graph, .value = value, .axis = -1, .made = made};
    if (!type || type->rank < 2 || !ort_dim_known(type->dim[type->rank - 1]))
        return false;
    m->channels = type->dim[type->rank - 1].size;
    ort_readers readers = ort_readers_of(graph, value);
    ort_node *node;
    while ((node = ort_readers_next(&readers)))
        if (ort_edit_is_any(node, "Gemm|MatMul"))
            (void)product_reader(m, node, value, -1); /* others go on reading the value itself */
    return m->channels > 1 && m->readers.count > 0;
}

void ort_channel_move_release(ort_channel_move *m)
{
    ort_vec_release(&m->sources);
    ort_vec_release(&m->readers);
}

/* ---- numbers */

/* The channel of element i of a part's constant. */
static int64_t channel_of(const ort_channel_part *p, const ort_shape *s, int64_t inner, int64_t i)
{
    const int64_t k = i / inner % s->dim[p->axis];
    if (p->groups == 1)
        return k;
    const int64_t filters = s->dim[0] / p->groups, outer = i / (inner * s->dim[p->axis]);
    return outer / filters * s->dim[p->axis] + k;
}

static int64_t inner_of(const ort_channel_part *p, const ort_shape *s)
{
    int64_t inner = 1;
    for (int i = p->axis + 1; i < s->rank; i++)
        inner *= s->dim[i];
    return inner;
}

void ort_channel_reach(const ort_channel_move *m, const ort_channel_parts *parts, bool weights,
                       float *reach)
{
    for (int64_t c = 0; c < m->channels; c++)
        reach[c] = 0;
    for (size_t k = 0; k < parts->count; k++) {
        const ort_channel_part *p = &parts->data[k];
        const ort_tensor *t = m->graph->values.data[p->node->inputs[p->slot]]->fact.value;
        const int64_t inner = inner_of(p, &t->shape), count = ort_tensor_count(t);
        for (int64_t i = 0; p->weight == weights && i < count; i++) {
            const float x = fabsf(((const float *)t->data)[i]);
            float *at = &reach[channel_of(p, &t->shape, inner, i)];
            *at = x > *at ? x : *at;
        }
    }
}

float ort_channel_factor(double from, double to, double alpha)
{
    enum { STEPS = 16, MOST = 16 * STEPS }; /* at most 2^16 either way */
    if (!(from > 0) || !(to > 0) || !isfinite(from) || !isfinite(to))
        return 1;
    double power = nearbyint(STEPS * (alpha * log2(from) - (1 - alpha) * log2(to)));
    int k = (int)fmin(fmax(power, -MOST), MOST), part = ((k % STEPS) + STEPS) % STEPS;
    static const float roots[STEPS] = {
        1.0f, 1.0442737824274138f, 1.0905077326652577f, 1.1387886347566916f, 1.189207115002721f,
        1.241857812073484f, 1.2968395546510096f, 1.3542555469368927f, 1.4142135623730951f,
        1.4768261459394993f, 1.5422108254079407f, 1.6104903319492543f, 1.681792830507429f,
        1.7562521603732995f, 1.8340080864093424f, 1.9152065613971474f};
    return ldexpf(roots[part], (k - part) / STEPS);
}

/* The numbers of a part's constant that may be changed: a copy that it reads from here on, or the
 * one that it has. */
static ort_status writable(const ort_channel_move *m, const ort_channel_part *p, float **to,
                           ort_error *err)
{
    const ort_id was = p->node->inputs[p->slot];
    const ort_graph_value *v = m->graph->values.data[was];
    const ort_tensor *t = v->fact.value;
    ort_tensor copy;
    ort_id id;
    for (size_t i = 0; i < m->made->count; i++)
        if (m->made->data[i] == was) {
            *to = t->data;
            return ORT_OK;
        }
    const char *name = ort_arena_printf(&m->graph->model->arena, "%s_even", v->name);
    if (!name)
        return ort_error_memory(err, strlen(v->name));
    ORT_TRY(ort_edit_new_constant(m->graph, name, ORT_DTYPE_FLOAT, &t->shape, &copy, &id, err));
    memcpy(copy.data, t->data, ort_tensor_bytes(&copy));
    ort_node_set_input(m->graph, p->node, p->slot, id);
    *to = copy.data;
    return ort_vec_push(m->made, id) ? ORT_OK : ort_error_memory(err, sizeof id);
}

static ort_status scale_part(const ort_channel_move *m, const ort_channel_part *p,
                             const float *factors, bool divide, ort_error *err)
{
    const ort_shape shape = m->graph->values.data[p->node->inputs[p->slot]]->fact.value->shape;
    const int64_t inner = inner_of(p, &shape), count = ort_shape_count(&shape);
    float *to = NULL;
    ORT_TRY(writable(m, p, &to, err));
    for (int64_t i = 0; i < count; i++) {
        const float s = factors[channel_of(p, &shape, inner, i)];
        to[i] = divide ? to[i] / s : to[i] * s;
    }
    return ORT_OK;
}

static ort_status divide_value(const ort_channel_move *m, const float *factors, ort_node **mul,
                               ort_error *err)
{
    ort_arena *arena = &m->graph->model->arena;
    const char *of = m->graph->values.data[m->value]->name;
    const char *name = ort_arena_printf(arena, "%s_even", of);
    const char *of_factors = ort_arena_printf(arena, "%s_factors", of);
    const ort_shape shape = ort_shape_make(1, &m->channels);
    ort_tensor inverse;
    ort_id in[2] = {m->value, ORT_ID_NONE}, out;
    if (!name || !of_factors)
        return ort_error_memory(err, strlen(of));
    ORT_TRY(ort_edit_new_constant(m->graph, of_factors, ORT_DTYPE_FLOAT, &shape, &inverse, &in[1],
                                  err));
    for (int64_t c = 0; c < m->channels; c++)
        ((float *)inverse.data)[c] = 1 / factors[c];
    out = ort_graph_add_value(m->graph, name);
    if (out == ORT_ID_NONE)
        return ort_error_memory(err, strlen(name));
    ort_node_spec spec = {.domain = ONNX, .op_type = "Mul", .name = name, .inputs = in,
                          .input_count = 2, .outputs = &out, .output_count = 1};
    ORT_TRY(ort_edit_add_node(m->graph, &spec, mul, err));
    for (size_t k = 0; k < m->readers.count; k++)
        ort_node_set_input(m->graph, m->readers.data[k].node, 0, out);
    return ORT_OK;
}

ort_status ort_channel_move_apply(ort_channel_move *m, const float *factors, ort_node **mul,
                                  ort_error *err)
{
    *mul = NULL;
    for (size_t k = 0; k < m->readers.count; k++)
        ORT_TRY(scale_part(m, &m->readers.data[k], factors, false, err));
    for (size_t k = 0; k < m->sources.count; k++)
        ORT_TRY(scale_part(m, &m->sources.data[k], factors, true, err));
    return m->foldable ? ORT_OK : divide_value(m, factors, mul, err);
}
