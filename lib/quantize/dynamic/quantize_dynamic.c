/* quantize_dynamic.c - the walk: what becomes integer, weights, nodes, and what nothing reads any
 * more.
 */
#include "quantize/dynamic/dynamic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/findings.h"
#include "base/strbuf.h"
#include "graph/strip.h"
#include "op/spacer.h"
#include "opset/opset.h"
#include "quantize/dynamic/dynamic_parts.h"
#include "quantize/folded.h"
#include "quantize/node_names.h"
#include "quantize/stamp.h"

enum { LEAST_OPSET = 11 }; /* of DynamicQuantizeLinear */

/* ---- reading */

static const ort_dynamic_row *row_of(const ort_node *node)
{
    const ort_dynamic_row *tables[] = {ort_dynamic_products, ort_dynamic_layers};
    for (int t = 0; t < 2; t++)
        for (const ort_dynamic_row *row = tables[t]; row->op_type; row++)
            if (ort_edit_is(node, row->domain, row->op_type))
                return row;
    return NULL;
}

static bool is_coded(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE &&
            ort_edit_is_any(ort_spacer_producer(graph, node->inputs[i]),
                            "DequantizeLinear|ms.DequantizeLinear"))
            return true;
    return false;
}

/* "" where the node is none that multiplies or looks up. */
static const char *objection(ort_dynamic *d, ort_dynamic_unit *u)
{
    const ort_dynamic_row *row = u->row;
    if (row->stays)
        return row->stays;
    if (is_coded(u->graph, u->node))
        return "it reads what codes stand for already";
    return row->read(d, u);
}

static ort_status read_node(ort_dynamic *d, ort_graph *graph, ort_node *node, ort_error *err)
{
    ort_dynamic_unit u = {.row = row_of(node), .graph = graph, .node = node};
    if (!u.row)
        return ORT_OK;
    const char *why = objection(d, &u);
    if (d->no_memory)
        return ort_error_memory(err, sizeof u);
    if (why && !*why)
        return ORT_OK;
    if (!ort_quantize_notes_add(d->notes, graph, node, why, &u.note))
        return ort_error_memory(err, sizeof u);
    const ort_dynamic_options *o = d->options;
    if (!why) {
        const ort_quantize_note *note = ort_quantize_notes_get(d->notes, u.note);
        why = ort_node_unwanted(graph, node, o->include, o->exclude);
        if (!why && o->stays)
            why = o->stays(o->arg, note->node, note->op_type);
        if (why && !ort_quantize_notes_stays(d->notes, u.note, why))
            return ort_error_memory(err, sizeof u);
    }
    return why || ort_vec_push(&d->units, u) ? ORT_OK : ort_error_memory(err, sizeof u);
}

static ort_status read_graph(ort_dynamic *d, ort_graph *graph, ort_error *err)
{
    ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        ORT_TRY(read_node(d, graph, node, err));
        for (int b = 0; b < node->body_count; b++)
            ORT_TRY(read_graph(d, node->bodies[b], err));
    }
    return ORT_OK;
}

/* ---- writing */

static ort_status write_units(ort_dynamic *d, ort_error *err)
{
    for (size_t k = 0; k < d->units.count; k++) {
        const ort_dynamic_unit *u = &d->units.data[k];
        double pairs = 0;
        if (u->stored) {
            ORT_TRY(ort_dynamic_write_stored(d, u, err));
            continue;
        }
        for (int i = 0; i < u->weight_count; i++)
            pairs = d->weights.data[u->weights[i]].pairs > pairs
                        ? d->weights.data[u->weights[i]].pairs
                        : pairs;
        ort_graph_remove_node(u->graph, u->node);
        ORT_TRY(u->row->write(d, u, err));
        ort_quantize_notes_became(d->notes, u->note, u->row->becomes, pairs);
    }
    return ORT_OK;
}

static bool is_unread(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, node->outputs[i]);
        if (v && (v->use_count > 0 || v->is_output))
            return false;
    }
    return ort_node_is_constant(node) || ort_edit_is_any(node, "Transpose|Identity");
}

/* Float weights that nothing reads any more, and what led to them. */
static ort_status tidy(ort_graph *graph, ort_error *err)
{
    ORT_TRY(ort_edit_finish(graph, err));
    for (size_t i = graph->order.count; i-- > 0;) {
        ort_node *node = graph->nodes.data[graph->order.data[i]];
        for (int b = 0; b < node->body_count && !node->removed; b++)
            ORT_TRY(tidy(node->bodies[b], err));
        if (!node->removed && node->body_count)
            (void)ort_graph_drop_captures(graph, node);
        if (!node->removed && is_unread(graph, node))
            ort_graph_remove_node(graph, node);
    }
    (void)ort_graph_drop_initializers(graph);
    return ort_edit_finish(graph, err);
}

static ort_status raise_opset(ort_dynamic *d, const ort_registry *registry, ort_error *err)
{
    int64_t opset = ort_model_opset(d->model, "");
    ort_findings *found = NULL;
    int reach = 0;
    if (opset == 0 || opset >= LEAST_OPSET)
        return ORT_OK;
    ORT_TRY(ort_findings_new(&found, err));
    ort_status status =
        ort_model_convert_opset(d->model, registry, LEAST_OPSET, false, found, &reach, err);
    if (status == ORT_OK && ort_model_opset(d->model, "") < LEAST_OPSET)
        status = ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                               "opset %lld can't become %d, which dynamic quantization needs: %s",
                               (long long)opset, LEAST_OPSET,
                               ort_findings_count(found) ? ort_findings_message(found, 0) : "");
    ort_findings_free(found);
    return status;
}

/* Options that differ from the defaults, as ort-quantize names them. */
static ort_status stamp(ort_dynamic *d, ort_error *err)
{
    const ort_dynamic_options *o = d->options;
    const struct {
        bool on;
        const char *name;
    } words[] = {{o->weights == ORT_DTYPE_INT8, "--weight-type int8"},
                 {o->symmetric_weights, "--symmetric-weights"},
                 {o->per_tensor, "--per-tensor"}, {o->plain_weights, "--plain-weights"},
                 {o->reduce_range, "--reduce-range"}, {o->computed, "--computed-products"},
                 {o->small, "--small"}, {o->float_tables, "--float-tables"},
                 {o->convs, "--convolutions"},
                 {o->stays || o->include || o->exclude,
                  o->choice ? o->choice : "nodes left out"}};
    ort_strbuf text = {0};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].on)
            ort_strbuf_addf(&text, "%s%s", text.length ? " " : "", words[i].name);
    const ort_quantize_stamp how = {.verb = "dynamic", .options = ort_strbuf_text(&text)};
    ort_status status = text.failed ? ort_error_memory(err, text.length)
                                    : ort_quantize_stamp_model(d->model, &how, err);
    ort_strbuf_release(&text);
    return status;
}

/* Nodes of functions become the graph's, and each has a name that reports call it by. */
static ort_status name_nodes(ort_model *model, ort_error *err)
{
    if (ort_graph_calls_functions(model->graph))
        ORT_TRY(ort_model_inline_functions(model, err));
    return ort_quantize_name_nodes(model, err);
}

/* The model as it came: what was computed so that it could become codes may be larger. */
static ort_status take_back(ort_dynamic *d, const ort_model *model, ort_error *err)
{
    ort_model *again;
    ORT_TRY(ort_model_clone(model, &again, err));
    ort_model_free(d->model);
    d->model = again;
    return name_nodes(d->model, err);
}

static ort_status quantize(ort_dynamic *d, const ort_model *model, const ort_registry *registry,
                           const ort_log *log, ort_error *err)
{
    ORT_TRY(name_nodes(d->model, err));
    ORT_TRY(ort_nodes_check_lists(d->model->graph, d->options->include, d->options->exclude,
                                  err));
    ORT_TRY(ort_quantize_fold_weights(d->model, registry, log, err));
    ORT_TRY(raise_opset(d, registry, err));
    ORT_TRY(ort_graph_infer(d->model->graph, registry, NULL, err));
    ORT_TRY(read_graph(d, d->model->graph, err));
    ort_dynamic_keep_last(d);
    ORT_TRY(ort_dynamic_settle_stored(d, err));
    ORT_TRY(ort_dynamic_keep_tables(d, err));
    if (d->units.count == 0)
        return take_back(d, model, err);
    ort_dynamic_share_tables(d);
    ORT_TRY(ort_dynamic_write_weights(d, err));
    ORT_TRY(write_units(d, err));
    ORT_TRY(tidy(d->model->graph, err));
    return stamp(d, err);
}

static bool codes_of(const ort_dynamic_options *o, bool symmetric, ort_codes_range *codes)
{
    return (o->weights == ORT_DTYPE_INT8 || o->weights == ORT_DTYPE_UINT8) &&
           ort_codes_range_of(o->weights, symmetric, o->reduce_range, codes);
}

ort_status ort_dynamic_quantize(ort_env *env, const ort_model *model,
                                const ort_dynamic_options *options, ort_model **result,
                                ort_quantize_notes *notes, ort_error *err)
{
    ort_dynamic d = {.options = options, .pool = env->pool, .notes = notes};
    if (!codes_of(options, options->symmetric_weights, &d.codes) ||
        !codes_of(options, true, &d.symmetric))
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "weights of dynamic products are int8 or uint8");
    ort_status status = ort_model_clone(model, &d.model, err);
    if (status == ORT_OK)
        status = ort_model_spool(d.model, options->folder, err);
    if (status == ORT_OK && !notes)
        status = ort_quantize_notes_new(&d.notes, err);
    if (status == ORT_OK)
        status = quantize(&d, model, env->registry, &env->log, err);
    if (!notes)
        ort_quantize_notes_free(d.notes);
    ort_vec_release(&d.weights);
    ort_vec_release(&d.bytes);
    ort_vec_release(&d.units);
    if (status == ORT_OK)
        *result = d.model;
    else
        ort_model_free(d.model);
    return status;
}
