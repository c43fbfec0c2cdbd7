/* diff.c - what differs between two models (diff.h).
 *
 * Nodes of equal structural hash pair up first. A change also changes the hash of all that comes
 * after it, so the rest is paired by name or by kind in order, and a pair is listed only when the
 * nodes themselves differ: operator version, attributes, constants, number of inputs.
 */
#include "graph/diff.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/hash.h"

typedef struct side {
    const ort_graph *graph;
    ort_graph_hashes hashes;
    ort_id *rest; /* nodes without a partner of the same hash */
    size_t rest_count;
} side;

typedef struct differ {
    side a, b;
    ort_arena arena;
    ort_strbuf *out;
    size_t count;
    ort_error *err;
} differ;

#define SAY(d, ...) ((d)->count++, ort_strbuf_addf((d)->out, __VA_ARGS__))

/* ---- headers, inputs, outputs */

static void diff_opsets(differ *d, const ort_model *a, const ort_model *b)
{
    for (size_t i = 0; i < a->opsets.count; i++) {
        const char *domain = a->opsets.data[i].domain;
        int64_t x = ort_model_opset(a, domain), y = ort_model_opset(b, domain);
        if (x != y)
            SAY(d, "opset of '%s': %lld, %lld\n", *domain ? domain : "ai.onnx", (long long)x,
                (long long)y);
    }
    for (size_t i = 0; i < b->opsets.count; i++)
        if (!ort_model_opset(a, b->opsets.data[i].domain))
            SAY(d, "opset of '%s': none, %lld\n", b->opsets.data[i].domain,
                (long long)b->opsets.data[i].version);
}

static void diff_ports(differ *d, const char *what, bool outputs)
{
    const ort_graph *a = d->a.graph, *b = d->b.graph;
    const ort_id *as = outputs ? a->outputs.data : a->inputs.data;
    const ort_id *bs = outputs ? b->outputs.data : b->inputs.data;
    size_t na = outputs ? a->outputs.count : a->inputs.count;
    size_t nb = outputs ? b->outputs.count : b->inputs.count;
    char x[1024], y[1024];
    for (size_t i = 0; i < na || i < nb; i++) {
        assert(i >= na || ort_graph_has_value(a, as[i]));
        assert(i >= nb || ort_graph_has_value(b, bs[i]));
        const ort_graph_value *va = i < na ? a->values.data[as[i]] : NULL;
        const ort_graph_value *vb = i < nb ? b->values.data[bs[i]] : NULL;
        if (!va || !vb) {
            SAY(d, "%s %s %zu: '%s'\n", va ? "-" : "+", what, i, (va ? va : vb)->name);
            continue;
        }
        if (strcmp(va->name, vb->name))
            SAY(d, "%s %zu is named '%s', '%s'\n", what, i, va->name, vb->name);
        ort_type_format(a->model->dims, &va->fact.type, x, sizeof x);
        ort_type_format(b->model->dims, &vb->fact.type, y, sizeof y);
        if (strcmp(x, y))
            SAY(d, "%s '%s': %s, %s\n", what, va->name, x, y);
    }
}

/* ---- nodes */

static ort_status find_rest(differ *d, side *own, const side *other)
{
    ort_hashmap counts = {0};
    const ort_node *node;
    bool ok = true;
    own->rest = ort_arena_array(&d->arena, own->graph->nodes.count, sizeof *own->rest);
    ORT_EACH_NODE(other->graph, node)
    {
        const char *key = (const char *)&other->hashes.nodes[node->id];
        uint64_t n = 0;
        (void)ort_hashmap_get(&counts, key, sizeof(uint64_t), &n);
        ok = ok && (ort_node_is_constant(node) ||
                    ort_hashmap_put(&counts, key, sizeof(uint64_t), n + 1));
    }
    ORT_EACH_NODE(own->graph, node)
    {
        const char *key = (const char *)&own->hashes.nodes[node->id];
        uint64_t n = 0;
        if (ort_node_is_constant(node))
            continue;
        (void)ort_hashmap_get(&counts, key, sizeof(uint64_t), &n);
        assert(own->rest_count < own->graph->nodes.count);
        if (n == 0 && own->rest)
            own->rest[own->rest_count++] = node->id;
        else
            ok = ok && ort_hashmap_put(&counts, key, sizeof(uint64_t), n - 1);
    }
    ort_hashmap_release(&counts);
    return ok && own->rest ? ORT_OK : ort_error_memory(d->err, sizeof(ort_id));
}

static const char *first_output(const ort_graph *graph, const ort_node *node)
{
    return node->output_count && node->outputs[0] != ORT_ID_NONE
               ? graph->values.data[node->outputs[0]]->name
               : "";
}

/* How well two unpaired nodes match: 0 not at all. */
static int likeness(const differ *d, const ort_node *x, const ort_node *y)
{
    bool named = (*x->name && !strcmp(x->name, y->name)) ||
                 !strcmp(first_output(d->a.graph, x), first_output(d->b.graph, y));
    if (strcmp(x->op_type, y->op_type) || strcmp(x->domain, y->domain))
        return named && x->input_count == y->input_count ? 1 : 0;
    return named ? 3 : 2;
}

static void diff_constants(differ *d, const ort_node *x, const ort_node *y, const char *label)
{
    for (int i = 0; i < x->input_count && i < y->input_count; i++) {
        const ort_tensor *p = ort_node_constant_input(d->a.graph, x, i);
        const ort_tensor *q = ort_node_constant_input(d->b.graph, y, i);
        char s[256], t[256];
        if (!p != !q) {
            SAY(d, "~ %s: input %d is %s, %s\n", label, i, p ? "a constant" : "computed",
                q ? "a constant" : "computed");
        } else if (p && (p->dtype != q->dtype || !ort_shape_equal(&p->shape, &q->shape))) {
            SAY(d, "~ %s: input %d is %s[%s], %s[%s]\n", label, i, ort_dtype_get(p->dtype)->name,
                ort_shape_list(&p->shape, s, sizeof s), ort_dtype_get(q->dtype)->name,
                ort_shape_list(&q->shape, t, sizeof t));
        } else if (p && ort_hash_tensor(p) != ort_hash_tensor(q)) {
            SAY(d, "~ %s: input %d (%s) has other values\n", label, i,
                d->a.graph->values.data[x->inputs[i]]->name);
        }
    }
}

static void diff_attributes(differ *d, const ort_node *x, const ort_node *y, const char *label)
{
    for (int i = 0; i < x->attr_count; i++) {
        const ort_attr *p = &x->attrs[i], *q = ort_node_attr(y, p->name);
        if (!q)
            SAY(d, "~ %s: attribute '%s' only in the first\n", label, p->name);
        else if (ort_hash_attr(d->a.graph->model->dims, p) !=
                 ort_hash_attr(d->b.graph->model->dims, q)) {
            if (p->type == ORT_ATTR_INT && q->type == ORT_ATTR_INT)
                SAY(d, "~ %s: attribute '%s': %lld, %lld\n", label, p->name, (long long)p->i,
                    (long long)q->i);
            else if (p->type == ORT_ATTR_FLOAT && q->type == ORT_ATTR_FLOAT)
                SAY(d, "~ %s: attribute '%s': %g, %g\n", label, p->name, (double)p->f,
                    (double)q->f);
            else
                SAY(d, "~ %s: attribute '%s' differs\n", label, p->name);
        }
    }
    for (int i = 0; i < y->attr_count; i++)
        if (!ort_node_has(x, y->attrs[i].name))
            SAY(d, "~ %s: attribute '%s' only in the second\n", label, y->attrs[i].name);
}

static ort_status diff_bodies(differ *d, const ort_node *x, const ort_node *y, const char *label)
{
    for (int i = 0; i < x->body_count && i < y->body_count; i++) {
        uint64_t p = 0, q = 0;
        ORT_TRY(ort_graph_hash(x->bodies[i], &p, d->err));
        ORT_TRY(ort_graph_hash(y->bodies[i], &q, d->err));
        if (p != q)
            SAY(d, "~ %s: body %d differs (%zu, %zu nodes)\n", label, i, x->bodies[i]->order.count,
                y->bodies[i]->order.count);
    }
    return ORT_OK;
}

static ort_status diff_pair(differ *d, const ort_node *x, const ort_node *y)
{
    char label[256];
    ort_node_label(x, label, sizeof label);
    if (strcmp(x->op_type, y->op_type) || strcmp(x->domain, y->domain)) {
        SAY(d, "~ %s: operator %s, %s\n", label, x->op_type, y->op_type);
        return ORT_OK;
    }
    if (x->opset != y->opset)
        SAY(d, "~ %s: opset %d, %d\n", label, x->opset, y->opset);
    if (x->input_count != y->input_count)
        SAY(d, "~ %s: %d inputs, %d\n", label, x->input_count, y->input_count);
    diff_attributes(d, x, y, label);
    diff_constants(d, x, y, label);
    return diff_bodies(d, x, y, label);
}

/* Pairs of the same likeness, best first; the window keeps this linear on large graphs. */
static ort_status pair_rest(differ *d)
{
    enum { WINDOW = 256 };
    side *a = &d->a, *b = &d->b;
    const side *sides[] = {a, b};
    char label[256];
    for (int wanted = 3; wanted >= 1; wanted--)
        for (size_t i = 0; i < a->rest_count; i++) {
            if (a->rest[i] == ORT_ID_NONE)
                continue;
            const ort_node *x = a->graph->nodes.data[a->rest[i]];
            for (size_t j = i > WINDOW ? i - WINDOW : 0; j < b->rest_count && j < i + WINDOW; j++) {
                if (b->rest[j] == ORT_ID_NONE)
                    continue;
                const ort_node *y = b->graph->nodes.data[b->rest[j]];
                if (likeness(d, x, y) < wanted)
                    continue;
                ORT_TRY(diff_pair(d, x, y));
                a->rest[i] = b->rest[j] = ORT_ID_NONE;
                break;
            }
        }
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sides[s]->rest_count; i++)
            if (sides[s]->rest[i] != ORT_ID_NONE)
                SAY(d, "%c %s\n", "-+"[s],
                    ort_node_label(sides[s]->graph->nodes.data[sides[s]->rest[i]], label,
                                   sizeof label));
    return ORT_OK;
}

static ort_status run(differ *d, const ort_model *a, const ort_model *b)
{
    ORT_TRY(ort_graph_hashes_init(a->graph, false, &d->a.hashes, d->err));
    ORT_TRY(ort_graph_hashes_init(b->graph, false, &d->b.hashes, d->err));
    diff_opsets(d, a, b);
    diff_ports(d, "input", false);
    diff_ports(d, "output", true);
    ORT_TRY(find_rest(d, &d->a, &d->b));
    ORT_TRY(find_rest(d, &d->b, &d->a));
    ORT_TRY(pair_rest(d));
    if (d->count == 0 && d->a.hashes.whole != d->b.hashes.whole)
        SAY(d, "the same nodes are wired differently\n");
    return ORT_OK;
}

ort_status ort_graph_diff(const ort_model *a, const ort_model *b, bool *equal, ort_strbuf *out,
                          ort_error *err)
{
    differ d = {.a = {.graph = a->graph}, .b = {.graph = b->graph}, .out = out, .err = err};
    ort_status status = run(&d, a, b);
    *equal = d.count == 0;
    ort_graph_hashes_release(&d.a.hashes);
    ort_graph_hashes_release(&d.b.hashes);
    ort_arena_release(&d.arena);
    if (status == ORT_OK && out->failed)
        status = ort_error_memory(err, out->length);
    return status;
}
