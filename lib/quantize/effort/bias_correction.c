/* bias_correction.c - codes of biases are changed where they are. */
#include "quantize/effort/bias_correction.h"

#include <math.h>

#include "op/edit.h"

/* The DequantizeLinear of int32 codes that gives the bias, or NULL. */
static const ort_node *bias_codes(const ort_layer *l)
{
    const ort_graph *graph = l->graph;
    if (l->bias < 0 || l->node->input_count <= l->bias)
        return NULL;
    const ort_node *from = ort_edit_producer(graph, l->node->inputs[l->bias]);
    if (!from || !ort_edit_is(from, ONNX, "DequantizeLinear") ||
        graph->values.data[from->outputs[0]]->use_count != 1 ||
        graph->values.data[from->inputs[0]]->use_count != 1)
        return NULL;
    const ort_tensor *codes = graph->values.data[from->inputs[0]]->fact.value;
    return codes && codes->data && codes->dtype == ORT_DTYPE_INT32 &&
                   graph->values.data[from->inputs[1]]->fact.value
               ? from
               : NULL;
}

bool ort_bias_takes(const ort_layer *l)
{
    return bias_codes(l) != NULL;
}

static double excess(const ort_layer *l, int64_t m)
{
    const int64_t at = m * l->filter_step, of = ort_tensor_count(l->scales) > 1 ? m : 0;
    const double scale = ort_tensor_get_f64(l->scales, of);
    const double zero = ort_tensor_get_f64(l->zeros, of);
    const double *mean = l->sum + m / l->filters * l->width;
    double sum = 0;
    for (int64_t k = 0; k < l->length; k++) {
        int64_t i = at + k * l->number_step;
        double number = (ort_tensor_get_f64(&l->codes, i) - zero) * scale;
        sum += (number - (double)l->weight[i]) * mean[k];
    }
    return sum / (double)l->rows;
}

void ort_correct_bias(ort_layer *l)
{
    const ort_node *from = bias_codes(l);
    if (!from || l->rows == 0)
        return;
    const ort_tensor *scales = l->graph->values.data[from->inputs[1]]->fact.value;
    ort_tensor codes = *l->graph->values.data[from->inputs[0]]->fact.value;
    const bool each = ort_tensor_count(scales) > 1;
    if (ort_tensor_count(&codes) != l->groups * l->filters)
        return;
    for (int64_t m = 0; m < l->groups * l->filters; m++) {
        double step = ort_tensor_get_f64(scales, each ? m : 0);
        double code = ort_tensor_get_f64(&codes, m) - nearbyint(excess(l, m) / step);
        ort_tensor_set_f64(&codes, m, fmin(fmax(code, INT32_MIN), INT32_MAX));
    }
}
