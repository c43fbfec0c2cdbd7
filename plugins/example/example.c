/* example.c - a provider in one file, to begin another with: a device that computes a few float
 * operators in memory of its own, one element at a time.
 *
 *     cc -O2 -shared -fPIC example.c $(pkg-config --cflags ort) -o ort-provider-example.so
 *     ort-run net.onnx --provider-lib ./ort-provider-example.so --provider example,cpu --random 1
 *     ORT_PROVIDER_PATH=. ort-inspect net.onnx --provider example,cpu --partition
 *
 * ort_provider.h says what each callback owes. They stand here in the order of a run.
 */
#include <math.h>
#include <ort_provider.h>
#include <stdlib.h>
#include <string.h>

static ort_status devices(ort_device_fn *tell, void *arg, ort_error *err)
{
    const ort_device_info info = {.name = "the example's loops", .kind = "cpu"};
    tell(arg, &info);
    return ORT_OK;
}

/* A device is whatever the other calls need: here the functions of the runtime. */
static ort_status open_device(const ort_provider_setup *setup, void **device, ort_error *err)
{
    *device = (void *)setup->api;
    return ORT_OK;
}

static void close_device(void *device)
{
}

static const struct row {
    const char *op;
    char code;
    bool two; /* operands */
} rows[] = {
    {"Relu", 'r', false}, {"Neg", 'n', false}, {"Exp", 'e', false}, {"Tanh", 't', false},
    {"Add", '+', true},   {"Sub", '-', true},  {"Mul", '*', true},  {"Div", '/', true},
};

static const struct row *find(const char *domain, const char *op)
{
    for (size_t i = 0; !*domain && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].op, op))
            return &rows[i];
    return NULL;
}

static bool supports(const ort_provider_api *api, const ort_op *op)
{
    return find(api->op_domain(op), api->op_name(op)) != NULL;
}

/* Every refusal says why: `ort-inspect --partition` shows it. */
static bool claim(void *device, const ort_graph *graph, const ort_node *node, const char **why)
{
    const ort_provider_api *api = device;
    const struct row *row = find(api->node_domain(node), api->node_type(node));
    ort_device_value a, b;
    *why = "no kernel";
    if (!row)
        return false;
    api->value(graph, api->input(node, 0), &a);
    api->value(graph, api->input(node, row->two), &b);
    *why = "the element type isn't float";
    if (a.dtype != ORT_DTYPE_FLOAT || b.dtype != ORT_DTYPE_FLOAT)
        return false;
    return true;
}

/* In seconds: where the CPU is faster, a node stays there unless the user says cost=off. */
static double cost(void *device, const ort_node_work *work)
{
    return (work->macs + work->flops) * 1e-9 + 1e-7;
}

static double copy_cost(void *device, double bytes)
{
    return bytes * 1e-10 + 1e-7;
}

/* ---- plans: what runs, and where each value lies */

typedef struct operand {
    size_t place; /* in floats */
    int64_t dims[16];   /* of the result's rank, 1 in front */
    int64_t strides[16]; /* 0 where it is spread */
    int rank;
} operand;

typedef struct step {
    const struct row *row;
    operand a, b, y;
} step;

typedef struct copy { size_t place, count; } copy; /* in floats */

typedef struct plan {
    step *steps;
    int *ends;      /* by part: one past its last step */
    copy *in, *out; /* by number of the copy */
    float *start;   /* what a frame's memory begins as: constants in their places */
    size_t floats;
} plan;

typedef struct builder {
    const ort_device_request *r;
    plan *p;
    size_t *places; /* by value id: place + 1; 0: none yet */
} builder;

/* A constant is read when its place is made. False: no memory. */
static bool place(builder *b, ort_id id, operand *o, int rank)
{
    ort_device_value v;
    int64_t stride = 1;
    b->r->api->settled(b->r, id, &v);
    if (!b->places[id]) {
        size_t count = (size_t)v.count, all = b->p->floats + count;
        float *more = realloc(b->p->start, (all + 1) * sizeof *more);
        if (!more)
            return false;
        b->p->start = more;
        if (v.constant)
            b->r->api->constant(b->r, id, more + b->p->floats, count * sizeof *more);
        b->places[id] = b->p->floats + 1;
        b->p->floats = all;
    }
    o->place = b->places[id] - 1;
    o->rank = rank < v.rank ? v.rank : rank;
    for (int d = o->rank - 1; d >= 0; d--) {
        int own = d - (o->rank - v.rank);
        o->dims[d] = own >= 0 ? v.dims[own] : 1;
        o->strides[d] = o->dims[d] == 1 ? 0 : stride;
        stride *= o->dims[d];
    }
    return true;
}

static bool add_copies(builder *b, const ort_device_copy *list, int count, copy *to)
{
    for (int i = 0; i < count; i++) {
        operand o;
        ort_device_value v;
        if (!place(b, list[i].id, &o, 0))
            return false;
        b->r->api->settled(b->r, list[i].id, &v);
        to[list[i].index] = (copy){o.place, (size_t)v.count};
    }
    return true;
}

static bool add_part(builder *b, const ort_device_part *part, int *end)
{
    const ort_provider_api *api = b->r->api;
    for (int i = part->first; i < part->first + part->count; i++) {
        const ort_node *node = b->r->steps[i].node;
        step *s = &b->p->steps[i];
        s->row = find(api->node_domain(node), api->node_type(node));
        if (!place(b, api->output(node, 0), &s->y, 0) ||
            !place(b, api->input(node, 0), &s->a, s->y.rank) ||
            !place(b, api->input(node, s->row->two), &s->b, s->y.rank))
            return false;
    }
    *end = part->first + part->count;
    return add_copies(b, part->in, part->in_count, b->p->in) &&
           add_copies(b, part->out, part->out_count, b->p->out);
}

static void plan_free(void *made)
{
    plan *p = made;
    free(p->steps);
    free(p->ends);
    free(p->in);
    free(p->out);
    free(p->start);
    free(p);
}

static ort_status plan_new(void *device, const ort_device_request *r, void **made, ort_error *err)
{
    size_t ins = 1, outs = 1;
    plan *p = calloc(1, sizeof *p);
    builder b = {.r = r, .p = p, .places = calloc(r->api->value_count(r->graph), sizeof *b.places)};
    for (int i = 0; i < r->part_count; i++) {
        ins += (size_t)r->parts[i].in_count;
        outs += (size_t)r->parts[i].out_count;
    }
    bool ok = p && b.places && (p->steps = calloc((size_t)r->step_count, sizeof *p->steps)) &&
              (p->ends = calloc((size_t)r->part_count, sizeof *p->ends)) &&
              (p->in = calloc(ins, sizeof *p->in)) && (p->out = calloc(outs, sizeof *p->out));
    for (int i = 0; ok && i < r->part_count; i++)
        ok = add_part(&b, &r->parts[i], &p->ends[i]);
    free(b.places);
    if (!ok && p)
        plan_free(p);
    *made = p;
    return ok ? ORT_OK : r->api->fail(err, ORT_ERROR_MEMORY, "no memory for a plan");
}

/* ---- frames and runs */

typedef struct frame {
    const plan *p;
    float data[];
} frame;

static ort_status frame_new(void *made, void **opened, size_t *bytes, ort_error *err)
{
    const plan *p = made;
    frame *f = malloc(sizeof *f + (p->floats + 1) * sizeof *f->data);
    if (!f)
        return err->status = ORT_ERROR_MEMORY;
    f->p = p;
    if (p->floats)
        memcpy(f->data, p->start, p->floats * sizeof *f->data);
    *bytes = p->floats * sizeof *f->data;
    *opened = f;
    return ORT_OK;
}

static ort_status copy_in(void *opened, int index, const void *data, ort_error *err)
{
    frame *f = opened;
    memcpy(f->data + f->p->in[index].place, data, f->p->in[index].count * sizeof *f->data);
    return ORT_OK;
}

static ort_status copy_out(void *opened, int index, void *data, ort_error *err)
{
    frame *f = opened;
    memcpy(data, f->data + f->p->out[index].place, f->p->out[index].count * sizeof *f->data);
    return ORT_OK;
}

static float apply(char code, float a, float b)
{
    switch (code) {
    case 'r': return a > 0 || a != a ? a : 0;
    case 'e': return expf(a);
    case 't': return tanhf(a);
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return a / b;
    default: return -a;
    }
}

static void elementwise(const step *s, const float *a, const float *b, float *y)
{
    int64_t at[16] = {0}, count = 1, ia = 0, ib = 0;
    for (int d = 0; d < s->y.rank; d++)
        count *= s->y.dims[d];
    for (int64_t i = 0; i < count; i++) {
        y[i] = apply(s->row->code, a[ia], b[ib]);
        for (int d = s->y.rank - 1; d >= 0; d--) { /* as an odometer counts */
            ia += s->a.strides[d];
            ib += s->b.strides[d];
            if (++at[d] < s->y.dims[d])
                break;
            ia -= at[d] * s->a.strides[d];
            ib -= at[d] * s->b.strides[d];
            at[d] = 0;
        }
    }
}

static ort_status run(void *opened, int part, ort_error *err)
{
    frame *f = opened;
    for (int i = part ? f->p->ends[part - 1] : 0; i < f->p->ends[part]; i++) {
        const step *s = &f->p->steps[i];
        elementwise(s, f->data + s->a.place, f->data + s->b.place, f->data + s->y.place);
    }
    return ORT_OK;
}

static ort_status sync_frame(void *opened, ort_error *err) /* run waits already */
{
    return ORT_OK;
}

static const ort_provider example = {
    .size = sizeof(ort_provider), .name = "example", .doc = "a provider to begin another with",
    .devices = devices, .open = open_device, .close = close_device,
    .claim = claim, .supports = supports, .cost = cost, .copy_cost = copy_cost, .plan = plan_new,
    .plan_free = plan_free, .frame = frame_new, .frame_free = free, .copy_in = copy_in, .run = run,
    .copy_out = copy_out, .sync = sync_frame,
};
static const ort_provider *const providers[] = {&example, NULL};

const ort_provider_library ort_provider_entry = {
    .abi = 1, .size = sizeof(ort_provider_library), .name = "example", .version = "1",
    .providers = providers,
};
