/* sqnr.c - ort_distance: how far one sequence of tensors is from another, by energies of signal and
 * noise, the angle between them, the worst element, and how often the best of a row stays the best.
 *
 * Nothing is kept but sums, so that memory is the same for any number of samples. A sum of a tensor
 * is formed in LANES partial sums, element i in lane i % LANES, and these are added in one order:
 * the bits depend on the elements alone, and the loop is one that compilers vectorize.
 */
#include <math.h>
#include <string.h>

#include "base/options.h"
#include "tensor/tensor.h"

enum { LANES = 8, BLOCK = 512 };

typedef struct sums {
    double signal[LANES], other[LANES], product[LANES], noise[LANES];
} sums;

/* Has an element of this type a distance from another? */
static bool measures(ort_dtype dtype)
{
    const ort_dtype_row *info = ort_dtype_get(dtype);
    return info && info->class_ != ORT_CLASS_STRING && info->class_ != ORT_CLASS_COMPLEX &&
           info->class_ != ORT_CLASS_NONE;
}

static bool plain_floats(const ort_tensor *t)
{
    return t->dtype == ORT_DTYPE_FLOAT && ort_tensor_aligned(t);
}

/* Elements [first, first + count) as doubles. */
static void read_block(const ort_tensor *t, int64_t first, int64_t count, double *out)
{
    const float *f = t->data;
    if (plain_floats(t))
        for (int64_t i = 0; i < count; i++)
            out[i] = (double)f[first + i];
    else
        for (int64_t i = 0; i < count; i++)
            out[i] = ort_tensor_get_f64(t, first + i);
}

/* Pairs with a number that isn't finite are counted, and become a pair of zeros: part of no sum. */
static void set_aside(ort_distance *d, double *x, double *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(x[i]) && isfinite(y[i])) {
            d->count++;
            continue;
        }
        bool same = x[i] == y[i] || (isnan(x[i]) && isnan(y[i]));
        d->odd_alike += same;
        d->odd_unlike += !same;
        x[i] = y[i] = 0;
    }
}

static void find_worst(ort_distance *d, const double *x, const double *y, int64_t first,
                       int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (fabs(x[i] - y[i]) > d->worst) {
            d->worst = fabs(x[i] - y[i]);
            d->worst_sample = d->samples;
            d->worst_index = first + i;
            d->worst_reference = x[i];
            d->worst_other = y[i];
        }
}

static void add_block(sums *s, const double *x, const double *y, int64_t count)
{
    for (int64_t i = 0; i < count; i += LANES) /* BLOCK is filled up with zeros */
        for (int k = 0; k < LANES; k++) {
            double a = x[i + k], b = y[i + k], e = a - b;
            s->signal[k] += a * a;
            s->other[k] += b * b;
            s->product[k] += a * b;
            s->noise[k] += e * e;
        }
}

static double joined(const double *lanes)
{
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

static void add_elements(ort_distance *d, const ort_tensor *reference, const ort_tensor *other)
{
    double x[BLOCK], y[BLOCK];
    sums s = {0};
    int64_t count = ort_tensor_count(reference);
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t here = count - first < BLOCK ? count - first : BLOCK;
        memset(x, 0, sizeof x);
        memset(y, 0, sizeof y);
        read_block(reference, first, here, x);
        read_block(other, first, here, y);
        set_aside(d, x, y, here);
        find_worst(d, x, y, first, here);
        add_block(&s, x, y, here);
    }
    d->signal += joined(s.signal);
    d->other += joined(s.other);
    d->product += joined(s.product);
    d->noise += joined(s.noise);
}

/* ---- rows */

enum { NO_CLASS = -1 };

/* The first of the largest numbers of a row, and how far it is above the next; NO_CLASS where one
 * is NaN. */
static int64_t best_of(const ort_tensor *t, int64_t first, int64_t count, double *margin)
{
    const float *f = t->data;
    bool plain = plain_floats(t);
    double best = ort_tensor_get_f64(t, first), second = -INFINITY;
    int64_t at = 0;
    bool nan = isnan(best);
    for (int64_t i = 1; i < count; i++) {
        double v = plain ? (double)f[first + i] : ort_tensor_get_f64(t, first + i);
        nan = nan || isnan(v);
        if (v > best) {
            second = best;
            best = v;
            at = i;
        } else if (v > second) {
            second = v;
        }
    }
    *margin = best - second;
    return nan ? NO_CLASS : at;
}

static void add_rows(ort_distance *d, const ort_tensor *reference, const ort_tensor *other)
{
    int rank = reference->shape.rank;
    int64_t width = rank > 0 ? reference->shape.dim[rank - 1] : 1;
    int64_t count = ort_tensor_count(reference);
    for (int64_t first = 0; width > 1 && first < count; first += width) {
        double margin, ignored;
        int64_t best = best_of(reference, first, width, &margin);
        if (best == NO_CLASS)
            continue;
        bool agrees = best_of(other, first, width, &ignored) == best;
        bool clear = margin > d->margin;
        d->rows++;
        d->agreeing += agrees;
        d->clear_rows += clear;
        d->clear_agreeing += clear && agrees;
    }
}

/* Both are contiguous. */
static void add_tensors(ort_distance *d, const ort_tensor *reference, const ort_tensor *other)
{
    add_elements(d, reference, other);
    if (!isnan(d->margin))
        add_rows(d, reference, other);
    d->samples++;
}

/* ---- public */

static ort_status check_pair(const ort_value *reference, const ort_value *other, ort_error *err)
{
    char a[160], b[160];
    if (reference->kind != ORT_KIND_TENSOR || other->kind != ORT_KIND_TENSOR)
        return ort_error_set(err, ORT_ERROR_DATA,
                             "a distance is between two tensors; here is a sequence, a map or "
                             "nothing");
    const ort_tensor *x = &reference->tensor, *y = &other->tensor;
    if (!measures(x->dtype) || !measures(y->dtype))
        return ort_error_set(err, ORT_ERROR_DATA,
                             "a distance is between real numbers; here are %s and %s",
                             ort_dtype_name(x->dtype), ort_dtype_name(y->dtype));
    if (!ort_shape_equal(&x->shape, &y->shape))
        return ort_error_set(err, ORT_ERROR_DATA, "the shapes %s and %s differ",
                             ort_shape_format(&x->shape, a, sizeof a),
                             ort_shape_format(&y->shape, b, sizeof b));
    return ORT_OK;
}

static ort_status add_pair(ort_distance *d, const ort_value *reference, const ort_value *other,
                           ort_error *err)
{
    ort_value *copies[2] = {NULL, NULL};
    ort_status status = ORT_OK;
    if (reference->tensor.stride)
        status = ort_value_clone(reference, &copies[0], err);
    if (status == ORT_OK && other->tensor.stride)
        status = ort_value_clone(other, &copies[1], err);
    if (status == ORT_OK)
        add_tensors(d, copies[0] ? &copies[0]->tensor : &reference->tensor,
                    copies[1] ? &copies[1]->tensor : &other->tensor);
    ort_value_free(copies[0]);
    ort_value_free(copies[1]);
    return status;
}

ort_status ort_distance_add(ort_distance *distance, const ort_value *reference,
                            const ort_value *other, ort_error *err)
{
    if (!distance || !reference || !other)
        return ort_error_null(err, __func__);
    ort_distance own = ORT_DISTANCE_INIT;
    const ort_distance *known = ORT_OPTIONS_KNOWN(distance, &own, err);
    if (!known)
        return ORT_ERROR_USAGE;
    ORT_TRY(check_pair(reference, other, err));
    ort_distance sum = *known;
    ORT_TRY(add_pair(&sum, reference, other, err));
    return ORT_RESULT_GIVE(distance, &sum, err);
}

/* What was added up; NULL where it can't be told, or nothing was. */
static const ort_distance *known_sums(const ort_distance *distance, ort_distance *own)
{
    if (!distance)
        return NULL;
    *own = (ort_distance)ORT_DISTANCE_INIT;
    return ort_options_known(distance, own, sizeof *own, __func__, NULL);
}

double ort_distance_sqnr_db(const ort_distance *distance)
{
    ort_distance own;
    const ort_distance *d = known_sums(distance, &own);
    if (!d || (d->count == 0 && d->odd_unlike == 0))
        return NAN;
    if (d->odd_unlike > 0)
        return -INFINITY;
    return d->noise == 0 ? INFINITY : 10 * log10(d->signal / d->noise);
}

double ort_distance_cosine(const ort_distance *distance)
{
    ort_distance own;
    const ort_distance *d = known_sums(distance, &own);
    if (!d || d->count == 0 || d->odd_unlike > 0)
        return NAN;
    if (d->noise == 0)
        return 1;
    if (d->signal == 0 || d->other == 0)
        return 0;
    double cosine = d->product / (sqrt(d->signal) * sqrt(d->other));
    return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
}

double ort_distance_top1(const ort_distance *distance)
{
    ort_distance own;
    const ort_distance *d = known_sums(distance, &own);
    return d && d->rows > 0 ? (double)d->agreeing / (double)d->rows : NAN;
}

double ort_distance_clear_top1(const ort_distance *distance)
{
    ort_distance own;
    const ort_distance *d = known_sums(distance, &own);
    return d && d->clear_rows > 0 ? (double)d->clear_agreeing / (double)d->clear_rows : NAN;
}
