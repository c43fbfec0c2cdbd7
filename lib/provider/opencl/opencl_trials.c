/* opencl_trials.c - measuring a device (tuning=measure): how fast launches and copies are, and
 * which form of the kernels is fastest for a shape.
 *
 * A plan of a device that is measured runs each product and convolution in every form, one after
 * the other, on the values of the run; all write the same result. The usual one runs twice: the
 * first of all finds nothing in caches, and isn't counted. What each took, events tell; the least
 * of all runs but a plan's first counts. The choice without tuning stays unless another is faster
 * by more than what two measurements of one thing differ by.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "provider/opencl/opencl.h"

#define WORTH 0.97 /* of the usual time, that another choice must stay below */

/* ---- choices */

static const ort_cl_tuned *find_tuned(const ort_cl_device *d, const char *shape)
{
    for (size_t i = 0; i < d->tuned.count; i++)
        if (!strcmp(d->tuned.data[i].shape, shape))
            return &d->tuned.data[i];
    return NULL;
}

static void add(ort_cl_choices *c, int tiles, int rows)
{
    if (c->count < ORT_CL_CHOICES)
        c->list[c->count++] = (ort_cl_choice){tiles, rows};
}

/* Rows from a few tiles to as many as an item may make; of those that are all the result has, only
 * the fewest. */
static void add_registers(ort_cl_choices *c, int tile, int64_t rows)
{
    int next;
    for (int count = ORT_CL_MOST_ROWS / tile * tile; count > 0; count = next) {
        next = count / 2 / tile * tile;
        if (next < rows || !next)
            add(c, ORT_CL_REGISTERS, count);
    }
}

void ort_cl_choices_of(const ort_cl_step *s, const char *shape, int64_t rows, double macs,
                       ort_cl_choices *c)
{
    const ort_cl_device *d = s->plan->device;
    const ort_cl_tuned *known = d->measuring ? NULL : find_tuned(d, shape);
    c->shape = shape;
    c->macs = macs;
    c->count = 0;
    add(c, known ? known->choice.tiles : d->own, known ? known->choice.rows : 0);
    if (!d->measuring)
        return;
    add(c, d->own, 0);
    int tile = d->tiles[ORT_CL_REGISTERS].rows;
    if (d->own != ORT_CL_REGISTERS || rows > tile) /* else all are as the usual one */
        add_registers(c, tile, rows);
    for (int i = ORT_CL_REGISTERS + 1; i < ORT_CL_TILES; i++)
        if (i != d->own && (size_t)(d->tiles[i].side * d->tiles[i].side) <= d->most_group)
            add(c, i, 0);
}

int ort_cl_choose(ort_cl_step *s, const ort_cl_choice *choice)
{
    s->tiles = choice->tiles;
    return (int)s->plan->launches.count;
}

void ort_cl_chosen(ort_cl_step *s, const ort_cl_choices *c, int index, int first)
{
    ort_cl_plan *p = s->plan;
    s->tiles = p->device->own;
    if (!p->device->measuring || index == 0)
        return;
    ort_cl_trial t = {.what = {.choice = c->list[index], .usual = index == 1, .macs = c->macs},
                      .first = first, .end = (int)p->launches.count};
    memcpy(t.what.shape, c->shape, strlen(c->shape) + 1);
    if (t.end > first && p->status == ORT_OK && !ort_vec_push(&p->trials, t))
        p->status = ort_error_memory(p->error, sizeof t);
}

/* ---- times */

static bool is_same(const ort_cl_measured *a, const ort_cl_measured *b)
{
    return a->usual == b->usual && a->choice.tiles == b->choice.tiles &&
           a->choice.rows == b->choice.rows && !strcmp(a->shape, b->shape);
}

static ort_status keep_least(ort_cl_device *d, const ort_cl_measured *m, ort_error *err)
{
    for (size_t i = 0; i < d->measured.count; i++) {
        ort_cl_measured *known = &d->measured.data[i];
        if (!is_same(known, m))
            continue;
        known->ns = m->ns < known->ns ? m->ns : known->ns;
        return ORT_OK;
    }
    return ort_vec_push(&d->measured, *m) ? ORT_OK : ort_error_memory(err, sizeof *m);
}

/* The fastest for the shape of `usual`. */
static ort_cl_tuned best_of(const ort_cl_device *d, const ort_cl_measured *usual)
{
    const ort_cl_measured *best = usual;
    for (size_t i = 0; i < d->measured.count; i++) {
        const ort_cl_measured *m = &d->measured.data[i];
        double limit = best == usual ? WORTH * usual->ns : best->ns;
        if (m->ns < limit && !strcmp(m->shape, usual->shape))
            best = m;
    }
    ort_cl_tuned t = {.choice = best->choice, .ns = best->ns, .usual_ns = usual->ns,
                      .macs = usual->macs};
    memcpy(t.shape, usual->shape, sizeof t.shape);
    return t;
}

static ort_status settle(ort_cl_device *d, ort_error *err)
{
    for (size_t i = 0; i < d->measured.count; i++) {
        if (!d->measured.data[i].usual)
            continue;
        ort_cl_tuned t = best_of(d, &d->measured.data[i]);
        ort_cl_tuned *known = (ort_cl_tuned *)find_tuned(d, t.shape);
        if (known)
            *known = t;
        else if (!ort_vec_push(&d->tuned, t))
            return ort_error_memory(err, sizeof t);
    }
    return ort_cl_tuning_write(d, err);
}

ort_status ort_cl_trials_note(ort_cl_plan *p, const double *times, ort_error *err)
{
    ort_cl_device *d = p->device;
    ort_status status = ORT_OK;
    bool news = false;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < p->trials.count && status == ORT_OK; i++) {
        ort_cl_trial *t = &p->trials.data[i];
        bool seen = true;
        t->what.ns = 0;
        for (int l = t->first; l < t->end; l++) {
            seen = seen && times[l] > 0;
            t->what.ns += times[l];
        }
        if (seen && t->warm)
            status = keep_least(d, &t->what, err);
        news = news || (seen && t->warm);
        t->warm = t->warm || seen;
    }
    if (status == ORT_OK && (news || !d->written))
        status = settle(d, err);
    d->written = d->written || status == ORT_OK;
    pthread_mutex_unlock(&d->lock);
    return status;
}

/* ---- rates */

enum { LAUNCHES = 100, TRIES = 5, FEW = 64, MANY = 16 << 20 };

typedef struct bench {
    ort_cl_device *d;
    cl_kernel kernel;
    cl_mem one, other;
    char *host;
    size_t many; /* bytes of a large copy */
    cl_int code; /* the first error */
} bench;

static void ask(bench *b, cl_int code)
{
    b->code = b->code == CL_SUCCESS ? code : b->code;
}

/* A kernel that moves one element. */
static void set_args(bench *b)
{
    const ort_cl_api *api = &b->d->api;
    const cl_int numbers[] = {0, 1, 1, 1, 1, 1, 1};
    ask(b, api->clSetKernelArg(b->kernel, 0, sizeof b->one, &b->one));
    ask(b, api->clSetKernelArg(b->kernel, 1, sizeof b->other, &b->other));
    for (cl_uint i = 0; i < sizeof numbers / sizeof *numbers; i++)
        ask(b, api->clSetKernelArg(b->kernel, i + 2, sizeof *numbers, &numbers[i]));
}

static void launches(bench *b, size_t bytes)
{
    static const size_t one[2] = {1, 1};
    for (int i = 0; i < LAUNCHES; i++)
        ask(b, b->d->api.clEnqueueNDRangeKernel(b->d->queue, b->kernel, 2, NULL, one, one, 0, NULL,
                                                NULL));
}

static void to_device(bench *b, size_t bytes)
{
    ask(b, b->d->api.clEnqueueWriteBuffer(b->d->queue, b->one, CL_TRUE, 0, bytes, b->host, 0, NULL,
                                          NULL));
}

static void to_host(bench *b, size_t bytes)
{
    ask(b, b->d->api.clEnqueueReadBuffer(b->d->queue, b->one, CL_TRUE, 0, bytes, b->host, 0, NULL,
                                         NULL));
}

static void on_device(bench *b, size_t bytes)
{
    ask(b, b->d->api.clEnqueueCopyBuffer(b->d->queue, b->one, b->other, 0, 0, bytes, 0, NULL,
                                         NULL));
}

/* The least of a few tries, in seconds; the first, which may build, is none of them. */
static double least(bench *b, void (*what)(bench *, size_t), size_t bytes)
{
    double best = 1e9;
    for (int i = 0; i <= TRIES && b->code == CL_SUCCESS; i++) {
        uint64_t begin = ort_clock_ns();
        what(b, bytes);
        ask(b, b->d->api.clFinish(b->d->queue));
        double seconds = (double)(ort_clock_ns() - begin + 1) / 1e9;
        best = i && seconds < best ? seconds : best;
    }
    return best;
}

static void measure(bench *b)
{
    ort_cl_rates r = b->d->rates;
    double in, out, small;
    set_args(b);
    r.launch = least(b, launches, 0) / LAUNCHES;
    in = least(b, to_device, FEW);
    out = least(b, to_host, FEW);
    small = r.copy = in > out ? in : out;
    in = least(b, to_device, b->many);
    out = least(b, to_host, b->many);
    in = in > out ? in : out; /* the slower way */
    r.copy_bytes = (double)b->many / (in > 2 * small ? in - small : in);
    r.bytes = 2 * (double)b->many / least(b, on_device, b->many);
    if (b->code == CL_SUCCESS)
        b->d->rates = r;
}

ort_status ort_cl_measure_rates(ort_cl_device *d, ort_error *err)
{
    bench b = {.d = d, .many = d->most_bytes < MANY ? d->most_bytes : MANY};
    ORT_TRY(ort_cl_kernel(d, d->own, "gemm", false, "pack", &b.kernel, err));
    b.host = calloc(1, b.many);
    b.one = d->api.clCreateBuffer(d->context, CL_MEM_READ_WRITE, b.many, NULL, &b.code);
    if (b.code == CL_SUCCESS)
        b.other = d->api.clCreateBuffer(d->context, CL_MEM_READ_WRITE, b.many, NULL, &b.code);
    if (b.host && b.code == CL_SUCCESS)
        measure(&b);
    if (b.one)
        d->api.clReleaseMemObject(b.one);
    if (b.other)
        d->api.clReleaseMemObject(b.other);
    d->api.clReleaseKernel(b.kernel);
    free(b.host);
    if (!b.host)
        return ort_error_memory(err, b.many);
    return b.code == CL_SUCCESS ? ORT_OK : ort_cl_fail(b.code, "measuring the device", err);
}
