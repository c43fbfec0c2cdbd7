/* quant_tables.c - what depends on one 8-bit code alone becomes a table of 256 codes.
 *
 *     DequantizeLinear, HardSwish, QuantizeLinear            LookUp
 *     QLinearSigmoid, QLinearMul (x times sigmoid of x)      LookUp
 *     DequantizeLinear, QuantizeLinear of another scale      LookUp
 *     Clip of codes                                          LookUp
 *     DequantizeLinear, PRelu of channels, QuantizeLinear    LookUpEach, a table for each channel
 *
 * Any elementwise operators may lie between, Q and DQ too, as long as one tensor of codes and
 * constants of one element are all that they read. The table is made by running them on the 256
 * codes, on the scalar tier: it holds what they would give. Level 3: LookUp is ours, so it is never
 * saved.
 *
 * A Reshape or Transpose before the QuantizeLinear moves the codes instead. Last of the passes that
 * turn to codes, this one says what stays in float between Q and DQ, and why.
 */
#include "base/error.h"
#include "graph/uses.h"
#include "op/eval.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"

enum {
    VALUES_MAX = 48,
    RUN_LEAST = 16, /* elements of one channel in a row that pay for a table of their own */
    STEPS_BEHIND = 3, /* a product that are looked through for what keeps codes from it */
};

/* How far back a region is looked for: where the longest is full, as in an unrolled net, codes
 * nearby are where the table begins. */
static const int depths[] = {40, 6, 3};

/* What a value is made of, when it is looked at: a tensor of codes; no codes, one number; more. */
enum { ROOT_CONSTANT = ORT_ID_NONE - 1, ROOT_NONE = ORT_ID_NONE };

typedef struct seen_value {
    ort_id id, root;
    ort_value *value; /* for all codes of the root; NULL: not computed */
} seen_value;

typedef struct region {
    ort_pass_context *c;
    seen_value seen[VALUES_MAX];
    int count, depth, depth_max;
    bool full; /* more values than it has room for */
    bool each; /* constants of one number for each channel are steps, too: */
    int64_t channels; /* so many of them, 0: none so far, */
    int behind;       /* that stand before so many axes */
    ort_node *nodes[VALUES_MAX]; /* that were run, in order */
    int node_count;
} region;

static bool is_code_type(const ort_type *type)
{
    return type->kind == ORT_TYPE_TENSOR && ort_quant_is_byte(type->dtype);
}

static bool is_look_up(const ort_node *node)
{
    return ort_edit_is(node, ORT_INTERNAL, "LookUp");
}

/* Does element i of its result depend on elements i alone? */
static bool is_step(const ort_graph *graph, ort_node *node)
{
    ort_quant q;
    if (!node || node->output_count != 1 || node->outputs[0] == ORT_ID_NONE)
        return false;
    if (ort_quant_read(graph, node, "QuantizeLinear", &q) ||
        ort_quant_read(graph, node, "DequantizeLinear", &q))
        return ort_quant_is_byte(q.dtype) && ort_quant_is_plain(&q);
    if (is_look_up(node))
        return true;
    return ort_node_has_trait(node, ORT_TRAIT_ELEMENTWISE) && node->op->impl->run &&
           !ort_node_has_trait(node, ORT_TRAIT_RANDOM | ORT_TRAIT_CONTROL) &&
           strcmp(node->op->domain, ORT_INTERNAL);
}

static ort_id root_of(region *r, ort_id id);

static seen_value *look(region *r, ort_id id)
{
    for (int i = 0; i < r->count; i++)
        if (r->seen[i].id == id)
            return &r->seen[i];
    return NULL;
}

/* False: there is no room. */
static bool note(region *r, ort_id id, ort_id root)
{
    r->full = r->full || r->count == VALUES_MAX;
    if (r->count == VALUES_MAX)
        return false;
    r->seen[r->count++] = (seen_value){id, root, NULL};
    return true;
}

/* Of the result of a step: what all of its inputs are made of. */
static ort_id root_of_step(region *r, const ort_node *node)
{
    ort_id root = ROOT_CONSTANT;
    const bool looks_up = is_look_up(node);
    if (looks_up && !look(r, node->inputs[1]) && !note(r, node->inputs[1], ROOT_NONE))
        return ROOT_NONE;
    for (int i = 0; i < (looks_up ? 1 : node->input_count); i++) {
        ort_id other = node->inputs[i] == ORT_ID_NONE ? ROOT_CONSTANT
                                                      : root_of(r, node->inputs[i]);
        if (other == ROOT_NONE || (other != ROOT_CONSTANT && root != ROOT_CONSTANT &&
                                   other != root))
            return ROOT_NONE;
        root = other == ROOT_CONSTANT ? root : other;
    }
    return root;
}

/* One number for all, or in such a region one for each channel. */
static bool is_number(region *r, const ort_tensor *t)
{
    const int64_t count = ort_tensor_count(t);
    int axis = 0;
    if (count == 1 || !r->each || count < 1)
        return count == 1;
    while (t->shape.dim[axis] == 1)
        axis++;
    const int behind = t->shape.rank - 1 - axis;
    if (t->shape.dim[axis] != count || (r->channels && (r->channels != count ||
                                                        r->behind != behind)))
        return false;
    r->channels = count;
    r->behind = behind;
    return true;
}

static ort_id find_root(region *r, ort_id id)
{
    const ort_graph *graph = r->c->graph;
    const ort_tensor *known = ort_fact_constant(graph, id);
    ort_node *producer = ort_edit_producer(graph, id);
    ort_id root = ROOT_NONE;
    if (known)
        return is_number(r, known) ? ROOT_CONSTANT : ROOT_NONE;
    if (++r->depth <= r->depth_max && is_step(graph, producer))
        root = root_of_step(r, producer);
    r->depth--;
    /* codes that several tensors make are where tables begin */
    bool begins = (root == ROOT_NONE || root == ROOT_CONSTANT) &&
                  is_code_type(ort_fact_type(graph, id));
    return begins ? id : root;
}

static ort_id root_of(region *r, ort_id id)
{
    seen_value *seen = look(r, id);
    if (seen)
        return seen->root;
    ort_id root = find_root(r, id);
    return note(r, id, root) ? root : ROOT_NONE;
}

/* ---- the values for all codes */

static ort_status compute(region *r, ort_id id, ort_id root, ort_value **value, ort_error *err);

static ort_status run_step(region *r, ort_node *node, ort_id root, ort_value **result,
                           ort_error *err)
{
    enum { INPUTS = 16 };
    ort_value *in[INPUTS] = {NULL};
    ort_fact facts[INPUTS];
    const ort_fact *given[INPUTS] = {NULL};
    if (node->input_count > INPUTS || r->node_count == VALUES_MAX)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "it has too many inputs");
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == ORT_ID_NONE)
            continue;
        ORT_TRY(compute(r, node->inputs[i], root, &in[i], err));
        facts[i] = ort_fact_of_value(in[i]);
        if (!ort_fact_constant(r->c->graph, node->inputs[i]))
            facts[i].value = NULL;
        given[i] = &facts[i];
    }
    r->nodes[r->node_count++] = node;
    return ort_node_eval(node, given, r->c->k, NULL, in, node->input_count, result, 1, err);
}

/* [256], or that of each channel. */
static ort_shape table_shape(const region *r)
{
    return r->channels ? (ort_shape){2, {r->channels, 256}} : (ort_shape){1, {256}};
}

static ort_status every_code(const region *r, ort_dtype dtype, ort_value **value, ort_error *err)
{
    const ort_shape shape = table_shape(r);
    ORT_TRY(ort_value_new_tensor_(dtype, &shape, value, err));
    for (int64_t i = 0; i < ort_shape_count(&shape); i++)
        ((uint8_t *)(*value)->tensor.data)[i] = (uint8_t)i;
    return ORT_OK;
}

/* Beside the codes of each channel its number. */
static void stand_up(const region *r, ort_tensor *number)
{
    if (r->channels && ort_tensor_count(number) == r->channels)
        number->shape = (ort_shape){2, {r->channels, 1}};
}

/* *value stays the region's. */
static ort_status compute(region *r, ort_id id, ort_id root, ort_value **value, ort_error *err)
{
    const ort_graph *graph = r->c->graph;
    seen_value *seen = look(r, id);
    const ort_tensor *known = ort_fact_constant(graph, id);
    if (!seen)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "it reads too many values");
    if (!seen->value) {
        ort_value *made = NULL;
        if (known) {
            ORT_TRY(ort_value_for_kernel(known, &made, err));
            if (seen->root == ROOT_CONSTANT)
                stand_up(r, &made->tensor);
        } else if (id == root)
            ORT_TRY(every_code(r, ort_fact_type(graph, id)->dtype, &made, err));
        else
            ORT_TRY(run_step(r, ort_edit_producer(graph, id), root, &made, err));
        seen->value = made;
    }
    *value = seen->value;
    return ORT_OK;
}

static void release(region *r)
{
    for (int i = 0; i < r->count; i++)
        ort_value_free(r->seen[i].value);
    r->count = r->depth = r->node_count = 0;
    r->channels = 0;
}

/* ---- the new node */

static void drop_unread(region *r)
{
    for (int i = r->node_count - 1; i >= 0; i--)
        if (!r->nodes[i]->removed)
            ort_quant_drop_unread(r->c->graph, r->nodes[i]->outputs[0]);
}

/* Codes that stay what they are need no table. */
static bool bypass(region *r, const ort_node *last, ort_id root, const ort_tensor *table)
{
    ort_graph *graph = r->c->graph;
    if (r->channels || ort_fact_type(graph, root)->dtype != table->dtype ||
        graph->values.data[last->outputs[0]]->is_output)
        return false;
    for (int i = 0; i < 256; i++)
        if (((const uint8_t *)table->data)[i] != i)
            return false;
    ort_graph_replace_uses(graph, last->outputs[0], root);
    drop_unread(r);
    return true;
}

static ort_status replace(region *r, ort_node *last, ort_id root, const ort_tensor *table,
                          ort_error *err)
{
    ort_graph *graph = r->c->graph;
    ort_tensor entries = *table;
    const ort_attr behind = ort_attr_int("behind", r->behind);
    entries.shape = table_shape(r);
    ort_id inputs[2] = {root, ORT_ID_NONE};
    ort_node merged = *r->nodes[0];
    for (int i = 1; i < r->node_count; i++)
        merged.origin = ort_edit_origin(graph, &merged, r->nodes[i]);
    ORT_TRY(ort_edit_add_constant(graph, "", &entries, &inputs[1], err));
    ort_node_spec spec = {.domain = ORT_INTERNAL,
                          .op_type = r->channels ? "LookUpEach" : "LookUp", .inputs = inputs,
                          .input_count = 2, .origin = merged.origin, .set = &behind,
                          .set_count = r->channels > 0};
    ORT_TRY(ort_edit_replace(graph, last, NULL, &spec, err));
    drop_unread(r);
    return ORT_OK;
}

/* One step that is as cheap as a table, or is one. A Clip of codes is neither: PyTorch has it where
 * a type has more codes than its net was trained for. */
static bool is_table_alone(const region *r)
{
    return r->node_count < 2 && !ort_edit_is(r->nodes[0], ONNX, "Clip");
}

/* Do the region's channels count along an axis of these codes, many of each in a row? */
static bool fits_channels(const region *r, const ort_type *codes)
{
    const int axis = ort_type_rank(codes) - 1 - r->behind;
    int64_t run = 1;
    for (int d = axis + 1; axis >= 0 && d < codes->rank; d++)
        run *= ort_dim_known(codes->dim[d]) ? codes->dim[d].size : RUN_LEAST;
    return !r->channels ||
           (axis >= 0 && ort_dim_is(codes->dim[axis], r->channels) && run >= RUN_LEAST);
}

/* Codes that steps make of one tensor of codes. */
static ort_status try_table(region *r, ort_node *last, int *changes, ort_error *err)
{
    ort_graph *graph = r->c->graph;
    ort_id root = root_of(r, last->outputs[0]);
    ort_value *table;
    ort_error problem = {0};
    if (root == last->outputs[0] || root == ROOT_NONE || root == ROOT_CONSTANT ||
        !ort_facts_same_shape(ort_fact_type(graph, root), ort_fact_type(graph, last->outputs[0])) ||
        (r->each && !r->channels) || !fits_channels(r, ort_fact_type(graph, root)))
        return ORT_OK;
    if (compute(r, last->outputs[0], root, &table, &problem) != ORT_OK) {
        ort_pass_note(r->c, last, "no table: %s", problem.message);
        return ORT_OK;
    }
    if (is_table_alone(r) ||
        ort_tensor_count(&table->tensor) != 256 * (r->channels ? r->channels : 1))
        return ORT_OK;
    ++*changes;
    return bypass(r, last, root, &table->tensor) ? ORT_OK
                                                 : replace(r, last, root, &table->tensor, err);
}

/* A move between steps and the QuantizeLinear: the codes are moved instead. */
static ort_status try_swap(region *r, ort_node *last, bool *swapped, ort_error *err)
{
    const ort_graph *graph = r->c->graph;
    ort_node *source = ort_quant_source(graph, last);
    *swapped = source && source->output_count == 1 && source->outputs[0] != last->inputs[0] &&
               is_step(graph, source) && root_of(r, source->outputs[0]) < ROOT_CONSTANT;
    return *swapped ? ort_quant_swap(r->c, last, err) : ORT_OK;
}

/* ---- what stays in float */

/* Why the numbers that `node` reads in this slot aren't codes for it; NULL: they are, or a
 * constant. */
static const char *why_no_codes(const ort_graph *graph, const ort_node *node, int slot)
{
    ort_quant q;
    ort_node *producer = ort_edit_producer(graph, node->inputs[slot]);
    if (ort_fact_value(graph, node->inputs[slot]))
        return NULL;
    if (!ort_edit_is(producer, ONNX, "DequantizeLinear"))
        return "isn't quantized";
    if (!ort_edit_constant(graph, producer, 1))
        return "has a scale that isn't constant";
    if (!ort_quant_read(graph, producer, "DequantizeLinear", &q))
        return "has a zero point that isn't constant, or a scale that isn't float32";
    return !ort_quant_is_byte(q.dtype) ? "hasn't 8 bits"
           : !ort_quant_is_plain(&q)   ? "has several scales"
                                       : NULL;
}

/* A QuantizeLinear that reads this, or NULL. */
static ort_node *coder_of_value(const ort_graph *graph, ort_id value)
{
    ort_readers readers = ort_readers_of(graph, value);
    ort_node *reader;
    while ((reader = ort_readers_next(&readers)))
        if (ort_edit_is(reader, ONNX, "QuantizeLinear"))
            return reader;
    return NULL;
}

/* A Split some functions of single elements behind the node, a part of which becomes codes; or
 * NULL. */
static const ort_node *split_after(const ort_graph *graph, const ort_node *node, int steps)
{
    ort_readers readers = ort_readers_of(graph, node->outputs[0]);
    ort_node *reader;
    while ((reader = ort_readers_next(&readers))) {
        const ort_node *found = NULL;
        for (int k = 0; ort_edit_is(reader, ONNX, "Split") && k < reader->output_count; k++)
            if (reader->outputs[k] != ORT_ID_NONE && coder_of_value(graph, reader->outputs[k]))
                return reader;
        if (steps > 0 && reader->output_count == 1 && reader->outputs[0] != ORT_ID_NONE &&
            ort_node_has_trait(reader, ORT_TRAIT_ELEMENTWISE))
            found = split_after(graph, reader, steps - 1);
        if (found)
            return found;
    }
    return NULL;
}

static void note_float(const ort_pass_context *c, ort_node *node)
{
    const ort_graph *graph = c->graph;
    bool reads_codes = false;
    ort_quant q;
    if (node->output_count < 1 || node->outputs[0] == ORT_ID_NONE ||
        ort_edit_is_any(node, "QuantizeLinear|DequantizeLinear"))
        return;
    for (int i = 0; i < node->input_count; i++)
        reads_codes = reads_codes || (node->inputs[i] != ORT_ID_NONE &&
                                      ort_edit_is(ort_edit_producer(graph, node->inputs[i]), ONNX,
                                                  "DequantizeLinear"));
    ort_node *coder = reads_codes ? coder_of_value(graph, node->outputs[0]) : NULL;
    if (!coder) {
        const ort_node *between = reads_codes ? split_after(graph, node, STEPS_BEHIND) : NULL;
        if (between)
            ort_pass_note(c, node, "not integer behind it: codes begin after %s '%s', whose parts "
                                   "haven't one scale", between->op_type, between->name);
        return;
    }
    for (int i = 0; i < node->input_count; i++) {
        const char *why = node->inputs[i] == ORT_ID_NONE ? NULL : why_no_codes(graph, node, i);
        if (why) {
            ort_pass_note(c, node, "not integer: input %d %s", i, why);
            return;
        }
    }
    if (!ort_quant_read(graph, coder, "QuantizeLinear", &q))
        ort_pass_note(c, node, "not integer: the scale of its result isn't a constant of float32");
    else
        ort_pass_note(c, node, "not integer: no form on codes for these inputs");
}

static ort_status try_step(region *r, ort_node *node, int *changes, ort_error *err)
{
    bool swapped = false;
    ort_status status = ORT_OK;
    if (!r->each && ort_edit_is(node, ONNX, "QuantizeLinear"))
        status = try_swap(r, node, &swapped, err);
    release(r);
    *changes += swapped;
    if (status == ORT_OK && !swapped)
        status = try_table(r, node, changes, err);
    return status;
}

/* One table for all, else one for each channel. */
static ort_status try_node(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    for (int each = 0; each < 2; each++) {
        region r = {.c = c, .full = true, .each = each};
        for (size_t i = 0; r.full && !node->removed && i < sizeof depths / sizeof *depths; i++) {
            r.full = false;
            r.depth_max = depths[i];
            ort_status status = try_step(&r, node, changes, err);
            release(&r);
            ORT_TRY(status);
        }
    }
    return ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
        if (node->output_count == 1 && node->outputs[0] != ORT_ID_NONE &&
            is_code_type(ort_fact_type(c->graph, node->outputs[0])) && is_step(c->graph, node))
            ORT_TRY(try_node(c, node, changes, err));
    if (!c->near_misses)
        return ORT_OK;
    ORT_PASS_EACH_NODE(c->graph, node)
        note_float(c, node);
    return ORT_OK;
}

const ort_pass ort_pass_quant_tables = {
    .name = "quant_tables",
    .level = 3,
    .speaks = true,
    .doc = "functions of one 8-bit code become a table",
    .apply = apply,
};
