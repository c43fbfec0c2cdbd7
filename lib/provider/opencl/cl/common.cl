/* common.cl - what every program begins with: the class of the device, vectors, activations.
 *
 * LANES is given: how many floats a register of a CPU has. A work item is a thread then, alone in
 * its group, and makes a tile in registers or walks over SPAN elements. LANES 0 is a device with
 * many small work items (GPUs): groups share tiles in local memory, an item has one element. */

/* Where a kernel has many numbers they are one argument, a struct of what a list names: a driver
 * copies each argument at each launch. */
#define MEMBER(type, name) type name;
#define OWN(type, name) type name = numbers.name;

/* Rounded once on every device; fma is what a device does fast. */
static float rounded_once(float a, float b, float c)
{
    return fma(a, b, c);
}

#ifndef FP_FAST_FMAF
#define fma mad
#endif

/* HALF: a `real` of a value or weight has 16 bits in memory, and 32 where it is computed with; each
 * device of OpenCL can read and write it so. A number beyond the largest becomes the largest. HALF
 * 2 is for devices with cl_khr_fp16: products are of 16 bits, too, and sums of few of them. */
#if HALF == 2
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#ifndef NUMBER
#define NUMBER half
#endif
#else
#define NUMBER float
#endif

static float kept(float x)
{
    return fabs(x) > 65504.0f && fabs(x) < INFINITY ? copysign(65504.0f, x) : x;
}

#define HALF_AT(p, i) vload_half(i, p)
#define HALF_PUT(p, i, v) vstore_half(kept(v), i, p)

#if HALF
typedef half real;
typedef ushort cell; /* of which only its place changes */
#define AT(p, i) HALF_AT(p, i)
#define PUT(p, i, v) HALF_PUT(p, i, v)
#define LOADR(p) HALF_LOAD(p)
#define STORER(v, p) HALF_STORE(v, p)
#else
typedef float real;
typedef float cell;
#define AT(p, i) p[i]
#define PUT(p, i, v) p[i] = v
#define LOADR(p) LOAD(p)
#define STORER(v, p) STORE(v, p)
#endif

/* Elements of one work item, of `count`. */
#define EACH(i, count)                                                                             \
    for (size_t i = get_global_id(0) * SPAN, end_ = min(i + SPAN, (size_t)(count)); i < end_; i++)
/* Of a row that items may share. */
#define ALONG(i, count) for (int i = get_global_id(0); i < (count); i += get_global_size(0))

/* An index that is out of range is told in `fault` (the first one: which step, where, which), and
 * element 0 stands for it. */
static int within(long index, int least, int size, __global int *fault, int code, int place)
{
    if (index >= least && index < size)
        return index < 0 ? (int)index + size : (int)index;
    if (atomic_cmpxchg((volatile __global int *)fault, 0, code) == 0) {
        fault[1] = place;
        fault[2] = index < INT_MIN ? INT_MIN : index > INT_MAX ? INT_MAX : (int)index;
    }
    return 0;
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#if LANES

#ifdef __has_attribute
#if __has_attribute(min_vector_width)
/* Else only half of a register is used. */
#define WIDE __attribute__((min_vector_width(32 * LANES)))
#endif
#endif
#ifndef WIDE
#define WIDE
#endif
#define ALONE WIDE __kernel __attribute__((reqd_work_group_size(1, 1, 1)))

typedef PASTE(float, LANES) V;
#define LOAD(p) PASTE(vload, LANES)(0, p)
#define STORE(v, p) PASTE(vstore, LANES)(v, 0, p)
#define HALF_LOAD(p) PASTE(vload_half, LANES)(0, p)
#define HALF_STORE(v, p) PASTE(vstore_half, LANES)(kept_all(v), 0, p)

static V kept_all(V x)
{
    V size = fabs(x);
    return select(x, copysign((V)65504.0f, x), size > 65504.0f && size < INFINITY);
}

/* A tile: ROWS rows (given, as many as registers allow) of STRIP columns; a panel in local memory
 * is DEEP rows of SUBS strips. Sums of DEEP products are added up apart, so that errors don't grow
 * with the depth. */
#define STRIP (2 * LANES)
#define SUBS 2
#define DEEP 128
#define MOST_ROWS 144 /* that an item makes */

/* Where sums of more products than DEEP wait: in the result itself, or, where that has 16 bits, in
 * local memory, as rows of a panel's width. Left operands of 16 bits are widened before. */
#if HALF
#define WAITING __local float
#define LEFT __local const float
#define HALF_OR(half_, float_) half_
#else
#define WAITING __global float
#define LEFT __global const float
#define HALF_OR(half_, float_) float_
#endif

typedef struct finish { /* what is done to a result: scaled below 0, bounded, activated */
    float leak, least, most;
    int kind;
    float a, b;
} finish;

#else
#define ALONE __kernel
#endif

#define GELU_ROOT 0.79788456080286536f /* of 2 / pi */

static float activate(int kind, float a, float b, float x)
{
    switch (kind) {
    case 1: return x < 0.0f ? 0.0f : x;
    case 2: return x >= 0.0f ? x : a * x;
    case 3: return x < a ? a : x > b ? b : x;
    case 4: return 1.0f / (1.0f + exp(-x));
    case 5: return tanh(x);
    case 6: return isnan(x) ? x : fmin(fmax(a * x + b, 0.0f), 1.0f);
    case 7: return 0.5f * x * (1.0f + erf(x * 0.70710678118654752f));
    case 8: return x * fmin(fmax(a * x + b, 0.0f), 1.0f);
    case 9: return x / (1.0f + exp(-a * x));
    case 10: return 0.5f * x * (1.0f + tanh(GELU_ROOT * (x + 0.044715f * x * x * x)));
    default: return x;
    }
}

#if LANES

static finish finish_of(int kind, float a, float b)
{
    finish f = {kind == 2 ? a : 1.0f, kind == 1 ? 0.0f : kind == 3 ? a : -INFINITY,
                kind == 3 ? b : INFINITY, kind > 3 ? kind : 0, a, b};
    return f;
}

static V bounded(const finish *f, V x)
{
    x = select(x, x * f->leak, x < 0.0f);
    x = select(x, (V)f->least, x < f->least);
    return select(x, (V)f->most, x > f->most);
}

/* activate() on a register, of what bounded() can't do. */
static V activated(const finish *f, V x)
{
    V gate = fmin(fmax(f->a * x + f->b, (V)0.0f), (V)1.0f);
    switch (f->kind) {
    case 4: return 1.0f / (1.0f + exp(-x));
    case 5: return tanh(x);
    case 6: return select(gate, x, isnan(x));
    case 7: return 0.5f * x * (1.0f + erf(x * 0.70710678118654752f));
    case 8: return x * gate;
    case 9: return x / (1.0f + exp(-f->a * x));
    case 10: return 0.5f * x * (1.0f + tanh(GELU_ROOT * (x + 0.044715f * x * x * x)));
    default: return x;
    }
}

/* In one rounding. fma() and mad() are calls for each lane, or two roundings, where a driver
 * forbids the compiler to contract by itself (PoCL does). */
static V fused(V a, V b, V c)
{
#pragma OPENCL FP_CONTRACT ON
    return a * b + c;
}
#if HALF
/* `count` elements that lie `step` apart. */
static void widen(__global const half *from, int step, __local float *to, int count)
{
    int i = 0;
    for (; step == 1 && i + LANES <= count; i += LANES)
        STORE(HALF_LOAD(from + i), to + i);
    for (; i < count; i++)
        to[i] = HALF_AT(from, (size_t)i * step);
}
#endif

/* A hint that memory is read soon. OpenCL's own, prefetch(), is nothing in PoCL. */
#ifdef __has_builtin
#if __has_builtin(__builtin_prefetch)
#define SOON(p) __builtin_prefetch((const void *)(size_t)(p))
#endif
#endif
#ifndef SOON
#define SOON(p)
#endif

/* acc += the products of ROWS rows of A, whose elements lie `step` apart, by a strip. */
#define MULTIPLY(acc, a, step, strip, depth) MULTIPLY_AND(acc, a, step, strip, depth, )
#define MULTIPLY_AND(acc, a, step, strip, depth, also)                                             \
    for (int k_ = 0; k_ < (depth); k_++) {                                                         \
        also;                                                                                      \
        V left_ = LOAD((strip) + k_ * STRIP), right_ = LOAD((strip) + k_ * STRIP + LANES);         \
        _Pragma("unroll") for (int i_ = 0; i_ < ROWS; i_++)                                        \
        {                                                                                          \
            V v_ = a[i_][(size_t)k_ * (step)];                                                     \
            acc[i_][0] = fused(v_, left_, acc[i_][0]);                                             \
            acc[i_][1] = fused(v_, right_, acc[i_][1]);                                            \
        }                                                                                          \
    }

#endif

/* Sums of a row are made in blocks of so many (of so many registers on a CPU), so that errors don't
 * grow with the row. */
#define SUM_BLOCK 128

/* The sum of `value`, which reads element i_ as T: a register at a time where `fast`. */
#if LANES
static float sum_of(V v)
{
#if LANES == 16
    float8 eight = v.lo + v.hi;
    float4 four = eight.lo + eight.hi;
#elif LANES == 8
    float4 four = v.lo + v.hi;
#else
    float4 four = v;
#endif
    float2 two = four.lo + four.hi;
    return two.x + two.y;
}
#define SUM(result, count, vector, scalar)                                                         \
    do {                                                                                           \
        V whole_ = 0.0f, part_ = 0.0f;                                                             \
        float rest_ = 0.0f;                                                                        \
        int i = 0, blocks_ = 0;                                                                    \
        for (; i + LANES <= (count); i += LANES) {                                                 \
            part_ += (vector);                                                                     \
            if (++blocks_ % SUM_BLOCK == 0) {                                                      \
                whole_ += part_;                                                                   \
                part_ = 0.0f;                                                                      \
            }                                                                                      \
        }                                                                                          \
        for (; i < (count); i++)                                                                   \
            rest_ += (scalar);                                                                     \
        result = sum_of(whole_ + part_) + rest_;                                                   \
    } while (0)
#define EACH_OF(count, vector, scalar)                                                             \
    do {                                                                                           \
        int i = 0;                                                                                 \
        for (; i + LANES <= (count); i += LANES)                                                   \
            vector;                                                                                \
        for (; i < (count); i++)                                                                   \
            scalar;                                                                                \
    } while (0)
#else
#define SUM(result, count, vector, scalar)                                                         \
    do {                                                                                           \
        float sum_ = 0.0f, part_ = 0.0f;                                                           \
        for (int i = 0; i < (count); i++) {                                                        \
            part_ += (scalar);                                                                     \
            if (i % SUM_BLOCK == SUM_BLOCK - 1) {                                                  \
                sum_ += part_;                                                                     \
                part_ = 0.0f;                                                                      \
            }                                                                                      \
        }                                                                                          \
        result = sum_ + part_;                                                                     \
    } while (0)
#define EACH_OF(count, vector, scalar)                                                             \
    for (int i = 0; i < (count); i++)                                                              \
    scalar
#endif

/* A row of `count` elements over its deviation (about its mean where `centred`), times a scale,
 * more a bias. skip: a second term of it, and `more` a third; their sum goes to `sums` before,
 * which may be where the row lies, or where the result goes. These and `bias` may be 0: there are
 * none. */
static void norm_row(__global const real *in, __global const real *skip,
                     __global const real *more, __global const real *scale,
                     __global const real *bias, __global real *sums, __global real *out,
                     bool centred, int count, float epsilon)
{
    float mean = 0.0f, sum;
    if (skip) {
        EACH_OF(count,
                STORER(LOADR(in + i) + LOADR(skip + i) + (more ? LOADR(more + i) : 0.0f),
                       sums + i),
                PUT(sums, i, AT(in, i) + AT(skip, i) + (more ? AT(more, i) : 0.0f)));
        in = sums;
    }
    if (centred) {
        SUM(sum, count, LOADR(in + i), AT(in, i));
        mean = sum / count;
    }
    SUM(sum, count, (LOADR(in + i) - mean) * (LOADR(in + i) - mean),
        (AT(in, i) - mean) * (AT(in, i) - mean));
    float over = 1.0f / sqrt(sum / count + epsilon);
    EACH_OF(count,
            STORER((LOADR(in + i) - mean) * over * LOADR(scale + i) +
                       (bias ? LOADR(bias + i) : 0.0f), out + i),
            PUT(out, i, (AT(in, i) - mean) * over * AT(scale, i) +
                            (bias ? AT(bias, i) : 0.0f)));
}

/* The largest number of a row; what is none doesn't count. */
static float most_of(__global const real *x, int count)
{
    float most = -INFINITY;
    int i = 0;
#if LANES
    V all = -INFINITY;
    for (; i + LANES <= count; i += LANES)
        all = select(all, LOADR(x + i), LOADR(x + i) > all);
    for (int l = 0; l < LANES; l++)
        most = fmax(most, ((const float *)&all)[l]);
#endif
    for (; i < count; i++)
        most = fmax(most, AT(x, i));
    return most;
}

/* exp(x - most) of a row, over their sum and `rest`. */
static void weigh_row(__global const real *x, __global real *out, int count, float most, float rest)
{
    float sum;
    EACH_OF(count, STORER(exp(LOADR(x + i) - most), out + i),
            PUT(out, i, exp(AT(x, i) - most)));
    SUM(sum, count, LOADR(out + i), AT(out, i));
    sum = 1.0f / (sum + rest);
    EACH_OF(count, STORER(LOADR(out + i) * sum, out + i), PUT(out, i, AT(out, i) * sum));
}
