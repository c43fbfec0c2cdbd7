/* report_weights.c - initializers: how they are stored, their range, and values that cost time or
 * accuracy (denormals, infinities, NaN). */
#include <math.h>

#include "base/num.h"
#include "base/vec.h"
#include "report/report.h"

typedef struct statistics {
    double minimum, maximum, sum;
    int64_t finite, nonfinite, zeros, denormals;
} statistics;

/* Exponent bits all zero and mantissa not, for the types that have such. */
static bool is_denormal(const ort_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case ORT_DTYPE_FLOAT: {
        uint32_t bits = ((const uint32_t *)t->data)[i];
        return !(bits & 0x7f800000u) && (bits & 0x007fffffu);
    }
    case ORT_DTYPE_DOUBLE: {
        uint64_t bits = ((const uint64_t *)t->data)[i];
        return !(bits & 0x7ff0000000000000u) && (bits & 0x000fffffffffffffu);
    }
    case ORT_DTYPE_FLOAT16: {
        uint16_t bits = ((const uint16_t *)t->data)[i];
        return !(bits & 0x7c00u) && (bits & 0x03ffu);
    }
    case ORT_DTYPE_BFLOAT16: {
        uint16_t bits = ((const uint16_t *)t->data)[i];
        return !(bits & 0x7f80u) && (bits & 0x007fu);
    }
    default: return false;
    }
}

static void look(const ort_tensor *t, statistics *s)
{
    int64_t count = ort_tensor_count(t);
    *s = (statistics){.minimum = INFINITY, .maximum = -INFINITY};
    for (int64_t i = 0; i < count; i++) {
        double v = t->dtype == ORT_DTYPE_FLOAT ? (double)((const float *)t->data)[i]
                                               : ort_tensor_get_f64(t, i);
        if (!isfinite(v)) {
            s->nonfinite++;
            continue;
        }
        s->finite++;
        s->sum += v;
        s->minimum = v < s->minimum ? v : s->minimum;
        s->maximum = v > s->maximum ? v : s->maximum;
        s->zeros += v == 0;
        s->denormals += is_denormal(t, i);
    }
}

static void put_statistics(ort_json *json, const ort_tensor *t)
{
    statistics s;
    bool numbers = t->dtype != ORT_DTYPE_STRING && t->dtype != ORT_DTYPE_COMPLEX64 &&
                   t->dtype != ORT_DTYPE_COMPLEX128;
    if (!numbers || !t->data || ort_tensor_count(t) == 0)
        return;
    look(t, &s);
    if (s.finite) {
        ort_json_key(json, "min");
        ort_json_double(json, s.minimum);
        ort_json_key(json, "max");
        ort_json_double(json, s.maximum);
        ort_json_key(json, "mean");
        ort_json_double(json, s.sum / (double)s.finite);
    }
    ort_report_int(json, "zeros", s.zeros);
    ort_report_int(json, "denormals", s.denormals);
    ort_report_int(json, "nonfinite", s.nonfinite);
}

static void put_tensor(ort_json *json, const char *name, const char *kind, const char *path,
                       const ort_tensor *t, bool looks)
{
    char text[512];
    ort_type type = ort_type_of_tensor(t);
    ort_json_begin_object(json);
    ort_report_text(json, "name", name);
    ort_report_text(json, "kind", kind);
    if (*path)
        ort_report_text(json, "graph", path);
    ort_report_text(json, "type", ort_type_format(NULL, &type, text, sizeof text));
    ort_report_text(json, "dtype", ort_dtype_get(t->dtype)->name);
    ort_report_int(json, "elements", ort_tensor_count(t));
    if (t->dtype != ORT_DTYPE_STRING)
        ort_report_int(json, "bytes", (int64_t)ort_tensor_bytes(t));
    if (looks)
        put_statistics(json, t);
    ort_json_end_object(json);
}

static void put_graph(ort_json *json, const ort_graph *graph, const char *path,
                      bool looks)
{
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const ort_graph_value *v = graph->values.data[graph->initializers.data[i]];
        const char *kind = v->is_sparse ? "sparse" : v->is_input ? "default" : "initializer";
        if (v->fact.value)
            put_tensor(json, v->name, kind, path, v->fact.value, looks);
    }
}

typedef struct visit {
    ort_json *json;
    bool looks;
    ORT_VEC(const ort_graph *) seen; /* bodies whose initializers were told */
} visit;

/* A body whose nodes have bodies is come by again behind each of these. */
static bool is_new(visit *v, const ort_graph *graph)
{
    for (size_t i = 0; i < v->seen.count; i++)
        if (v->seen.data[i] == graph)
            return false;
    return graph->parent && ort_vec_push(&v->seen, graph);
}

static void visit_node(void *arg, const ort_graph *graph, const ort_node *node, const char *path)
{
    visit *v = arg;
    if (is_new(v, graph))
        put_graph(v->json, graph, path, v->looks);
    const ort_tensor *t = ort_node_constant(node);
    if (t && node->output_count && node->outputs[0] != ORT_ID_NONE)
        put_tensor(v->json, graph->values.data[node->outputs[0]]->name, "constant", path, t,
                   v->looks);
}

void ort_report_initializers(ort_json *json, const ort_model *model, bool looks)
{
    visit v = {.json = json, .looks = looks};
    ort_json_key(json, "initializers");
    ort_json_begin_array(json);
    put_graph(json, model->graph, "", looks);
    ort_report_each_node(model->graph, "", visit_node, &v);
    ort_vec_release(&v.seen);
    ort_json_end_array(json);
}
