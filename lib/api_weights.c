/* api_weights.c - weights of a few bits, of ort_tools.h: thin. */
#include "base/options.h"
#include "quantize/weights/weights.h"

ort_status ort_weights_new(ort_env *env, const ort_model *model,
                           const ort_weights_options *options, ort_weights **weights,
                           ort_error *err)
{
    if (!env || !model || !weights)
        return ort_error_null(err, __func__);
    ort_weights_options own = ORT_WEIGHTS_OPTIONS_INIT;
    *weights = NULL;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    return options ? ort_low_bits_make(env, model, options, weights, err) : ORT_ERROR_USAGE;
}

void ort_weights_free(ort_weights *weights)
{
    ort_low_bits_release(weights);
}

ort_status ort_weights_observe(ort_weights *weights, ort_value *const *inputs, size_t input_count,
                               ort_error *err)
{
    if (!weights || (input_count && !inputs))
        return ort_error_null(err, __func__);
    return ort_low_bits_observe(weights, inputs, input_count, err);
}

ort_status ort_weights_apply(ort_weights *weights, ort_model **model, ort_error *err)
{
    if (!weights || !model)
        return ort_error_null(err, __func__);
    *model = NULL;
    return ort_low_bits_write(weights, model, err);
}

size_t ort_weights_node_count(const ort_weights *weights)
{
    return weights ? weights->readers.count : 0;
}

ort_status ort_weights_node_at(const ort_weights *weights, size_t index, ort_weights_node *node,
                               ort_error *err)
{
    if (!weights || !node)
        return ort_error_null(err, __func__);
    ORT_TRY(ORT_RESULT_CHECK(node, err));
    if (index >= weights->readers.count)
        return ort_error_set(err, ORT_ERROR_USAGE, "node %zu of %zu", index,
                             weights->readers.count);
    const ort_weight_reader *r = &weights->readers.data[index];
    ort_weights_node own = {.size = sizeof own, .name = r->name, .op_type = r->op_type,
                            .why = r->why};
    if (r->weight != SIZE_MAX) {
        const ort_weight *w = &weights->weights.data[r->weight];
        bool first = true;
        for (size_t i = 0; i < index; i++)
            first = first && weights->readers.data[i].weight != r->weight;
        own.rows = w->shape.k;
        own.columns = w->shape.n;
        own.bytes_before = first ? w->bytes : 0;
        own.bytes_after = first ? w->made_bytes : 0;
    }
    return ORT_RESULT_GIVE(node, &own, err);
}
