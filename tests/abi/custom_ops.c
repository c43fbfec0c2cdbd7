/* custom_ops.c - a client's operators, as clients write them: through the table alone.
 *
 * They cover what OrtCustomOp can say: several types, optional and variadic inputs and outputs, any
 * type, versions, shape inference, state, strings, refusals; one says all that it is told of its
 * node. The same file is a library with RegisterCustomOps, and a part of the scenarios' program.
 */
#include "custom_ops.h"

#include <stdlib.h>
#include <string.h>

side *custom_witness;

typedef struct test_kernel {
    const api *api;
    const struct test_op *op;
    OrtKernelInfo *info;
    OrtOp *inner;
    float factor;
    int64_t count; /* of runs */
    int constant;
} test_kernel;

typedef OrtStatus *create_fn(test_kernel *k, const OrtKernelInfo *info);
typedef OrtStatus *compute_fn(test_kernel *k, OrtKernelContext *c);
typedef OrtStatus *shape_fn(const api *a, OrtShapeInferContext *c);

typedef struct test_op {
    OrtCustomOp op; /* first member */
    const char *name;
    int inputs[4], outputs[4]; /* element types; 0: any; -1: the end */
    int input_kinds[4], output_kinds[4];
    int min_arity, mixed, since, until;
    create_fn *create;
    compute_fn *compute;
    shape_fn *shape;
} test_op;

/* The table of the library whose session is being made: shape inference isn't given it. */
static const api *current;

/* ---- what every operator says */

static const test_op *me(const OrtCustomOp *op) { return (const test_op *)op; }

static size_t count_of(const int *types)
{
    size_t n = 0;
    while (n < 4 && types[n] >= 0)
        n++;
    return n;
}

static const char *get_name(const OrtCustomOp *op) { return me(op)->name; }
static const char *get_provider(const OrtCustomOp *op) { return NULL; }
static int input_type(const OrtCustomOp *op, size_t i) { return me(op)->inputs[i]; }
static size_t input_count(const OrtCustomOp *op) { return count_of(me(op)->inputs); }
static int output_type(const OrtCustomOp *op, size_t i) { return me(op)->outputs[i]; }
static size_t output_count(const OrtCustomOp *op) { return count_of(me(op)->outputs); }
static int input_kind(const OrtCustomOp *op, size_t i) { return me(op)->input_kinds[i]; }
static int output_kind(const OrtCustomOp *op, size_t i) { return me(op)->output_kinds[i]; }
static int memory_type(const OrtCustomOp *op, size_t i) { return 0; }
static int min_arity(const OrtCustomOp *op) { return me(op)->min_arity; }
static int homogeneous(const OrtCustomOp *op) { return !me(op)->mixed; }
static int one(const OrtCustomOp *op) { return 1; }
static int start_version(const OrtCustomOp *op) { return me(op)->since ? me(op)->since : 1; }
static int end_version(const OrtCustomOp *op) { return me(op)->until ? me(op)->until : 1000; }

static OrtStatus *create_v2(const OrtCustomOp *op, const OrtApi *functions,
                            const OrtKernelInfo *info, void **kernel)
{
    test_kernel *k = calloc(1, sizeof *k);
    k->api = (const api *)functions;
    k->op = me(op);
    OrtStatus *status = k->op->create ? k->op->create(k, info) : NULL;
    if (status == NULL)
        *kernel = k;
    else
        free(k);
    return status;
}

static void *create_v1(const OrtCustomOp *op, const OrtApi *functions, const OrtKernelInfo *info)
{
    void *kernel = NULL;
    OrtStatus *refused = create_v2(op, functions, info, &kernel);
    return refused ? NULL : kernel;
}

static OrtStatus *compute_v2(void *kernel, OrtKernelContext *c)
{
    test_kernel *k = kernel;
    k->count++;
    return k->op->compute(k, c);
}

static void compute_v1(void *kernel, OrtKernelContext *c)
{
    const test_kernel *k = kernel;
    OrtStatus *status = compute_v2(kernel, c);
    k->api->ReleaseStatus(status);
}

static void destroy(void *kernel)
{
    test_kernel *k = kernel;
    k->api->ReleaseKernelInfo(k->info);
    k->api->ReleaseOp(k->inner);
    free(k);
}

static OrtStatus *infer(const OrtCustomOp *op, OrtShapeInferContext *c)
{
    return me(op)->shape ? me(op)->shape(current, c) : NULL;
}

/* ---- tools */

#define TRY(call)                                                                                  \
    do {                                                                                           \
        OrtStatus *status_ = (call);                                                               \
        if (status_ != NULL)                                                                       \
            return status_;                                                                        \
    } while (0)

typedef struct view {
    const OrtValue *value; /* NULL: left out */
    int type;
    size_t rank, count;
    int64_t dims[8];
    void *data; /* NULL: strings */
} view;

static OrtStatus *look(const api *a, const OrtValue *value, view *v)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    *v = (view){.value = value};
    if (!value)
        return NULL;
    TRY(a->GetTensorTypeAndShape(value, &info));
    TRY(a->GetTensorElementType(info, &v->type));
    TRY(a->GetDimensionsCount(info, &v->rank));
    TRY(a->GetDimensions(info, v->dims, v->rank));
    TRY(a->GetTensorShapeElementCount(info, &v->count));
    a->ReleaseTensorTypeAndShapeInfo(info);
    return v->type == 8 ? NULL : a->GetTensorMutableData((OrtValue *)value, &v->data);
}

static OrtStatus *input(const test_kernel *k, const OrtKernelContext *c, size_t i, view *v)
{
    const OrtValue *value = NULL;
    TRY(k->api->KernelContext_GetInput(c, i, &value));
    return look(k->api, value, v);
}

static OrtStatus *output(const test_kernel *k, OrtKernelContext *c, size_t i, const view *like,
                         view *v)
{
    OrtValue *value = NULL;
    TRY(k->api->KernelContext_GetOutput(c, i, like->dims, like->rank, &value));
    return look(k->api, value, v);
}

static double get(const view *v, size_t i)
{
    switch (v->type) {
    case 1:
        return ((const float *)v->data)[i];
    case 7:
        return (double)((const int64_t *)v->data)[i];
    case 11:
        return ((const double *)v->data)[i];
    default:
        return 0;
    }
}

static void set(const view *v, size_t i, double x)
{
    if (v->type == 1)
        ((float *)v->data)[i] = (float)x;
    else if (v->type == 7)
        ((int64_t *)v->data)[i] = (int64_t)x;
    else if (v->type == 11)
        ((double *)v->data)[i] = x;
}

/* ---- Scale: Y = factor * X, a kernel for each type */

static OrtStatus *scale_create(test_kernel *k, const OrtKernelInfo *info)
{
    return k->api->KernelInfoGetAttribute_float(info, "factor", &k->factor);
}

static OrtStatus *scale(test_kernel *k, OrtKernelContext *c)
{
    view x, y;
    TRY(input(k, c, 0, &x));
    TRY(output(k, c, 0, &x, &y));
    for (size_t i = 0; i < x.count; i++)
        set(&y, i, (double)k->factor * get(&x, i));
    return NULL;
}

/* ---- Maybe: Y = X + B, Z = X * B; B and Z may be left out */

static OrtStatus *maybe(test_kernel *k, OrtKernelContext *c)
{
    view x, b, y, z;
    size_t inputs = 0, outputs = 0;
    TRY(k->api->KernelContext_GetInputCount(c, &inputs));
    TRY(k->api->KernelContext_GetOutputCount(c, &outputs));
    TRY(input(k, c, 0, &x));
    b = (view){.value = NULL};
    z = (view){.value = NULL};
    if (inputs > 1)
        TRY(input(k, c, 1, &b));
    TRY(output(k, c, 0, &x, &y));
    if (outputs > 1)
        TRY(output(k, c, 1, &x, &z));
    for (size_t i = 0; i < x.count; i++) {
        double by = b.value ? get(&b, 0) : 0;
        set(&y, i, get(&x, i) + by);
        if (z.value)
            set(&z, i, get(&x, i) * by);
    }
    return NULL;
}

/* ---- Total: the sum of two or more of one type; Sizes: element counts of any */

static OrtStatus *total(test_kernel *k, OrtKernelContext *c)
{
    view x, y;
    size_t count = 0;
    TRY(k->api->KernelContext_GetInputCount(c, &count));
    TRY(input(k, c, 0, &x));
    TRY(output(k, c, 0, &x, &y));
    for (size_t i = 0; i < y.count; i++)
        set(&y, i, 0);
    for (size_t n = 0; n < count; n++) {
        TRY(input(k, c, n, &x));
        for (size_t i = 0; i < x.count; i++)
            set(&y, i, get(&y, i) + get(&x, i));
    }
    return NULL;
}

static OrtStatus *sizes(test_kernel *k, OrtKernelContext *c)
{
    view x, y, like = {.rank = 1};
    size_t count = 0;
    TRY(k->api->KernelContext_GetInputCount(c, &count));
    like.dims[0] = (int64_t)count;
    TRY(output(k, c, 0, &like, &y));
    for (size_t i = 0; i < count; i++) {
        TRY(input(k, c, i, &x));
        set(&y, i, (double)(x.count * 100 + (size_t)x.type));
    }
    return NULL;
}

/* ---- Same: a copy, of any type; Shout: strings in capitals */

static OrtStatus *same(test_kernel *k, OrtKernelContext *c)
{
    view x, y;
    size_t bytes = 0;
    TRY(input(k, c, 0, &x));
    TRY(output(k, c, 0, &x, &y));
    TRY(k->api->GetTensorSizeInBytes(x.value, &bytes));
    memcpy(y.data, x.data, bytes);
    return NULL;
}

static OrtStatus *shout(test_kernel *k, OrtKernelContext *c)
{
    view x, y;
    TRY(input(k, c, 0, &x));
    TRY(output(k, c, 0, &x, &y));
    for (size_t i = 0; i < x.count; i++) {
        char text[64] = "";
        size_t length = 0;
        TRY(k->api->GetStringTensorElementLength(x.value, i, &length));
        TRY(k->api->GetStringTensorElement(x.value, length, i, text));
        text[length] = '\0';
        for (char *p = text; *p; p++)
            *p = (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
        TRY(k->api->FillStringTensorElement((OrtValue *)y.value, text, i));
    }
    return NULL;
}

/* ---- Widen: the last axis becomes `to` long */

static OrtStatus *widen_shape(const api *a, OrtShapeInferContext *c)
{
    const OrtOpAttr *attr = NULL;
    OrtTensorTypeAndShapeInfo *in = NULL, *out = NULL;
    size_t count = 0, rank = 0, size = 0;
    int64_t dims[8], to = 0;
    const char *symbols[8];
    TRY(a->ShapeInferContext_GetInputCount(c, &count));
    TRY(a->ShapeInferContext_GetInputTypeShape(c, 0, &in));
    TRY(a->GetDimensionsCount(in, &rank));
    TRY(a->GetDimensions(in, dims, rank));
    TRY(a->GetSymbolicDimensions(in, symbols, rank));
    TRY(a->ShapeInferContext_GetAttribute(c, "to", &attr));
    TRY(a->ReadOpAttr(attr, ABI_ATTR_INT, &to, sizeof to, &size));
    dims[rank - 1] = to;
    symbols[rank - 1] = "";
    TRY(a->CreateTensorTypeAndShapeInfo(&out));
    TRY(a->SetTensorElementType(out, 1));
    TRY(a->SetDimensions(out, dims, rank));
    TRY(a->SetSymbolicDimensions(out, symbols, rank));
    TRY(a->ShapeInferContext_SetOutputTypeShape(c, 0, out));
    a->ReleaseTensorTypeAndShapeInfo(out);
    return NULL;
}

static OrtStatus *widen_create(test_kernel *k, const OrtKernelInfo *info)
{
    return k->api->KernelInfoGetAttribute_int64(info, "to", &k->count);
}

static OrtStatus *widen(test_kernel *k, OrtKernelContext *c)
{
    view x, y, like;
    int64_t to = 5;
    TRY(input(k, c, 0, &x));
    like = x;
    like.dims[x.rank - 1] = to;
    TRY(output(k, c, 0, &like, &y));
    for (size_t i = 0; i < y.count; i++) {
        size_t line = i / (size_t)to, at = i % (size_t)to, width = (size_t)x.dims[x.rank - 1];
        set(&y, i, at < width ? get(&x, line * width + at) : -1);
    }
    return NULL;
}

/* ---- Told: says all that it is told of its node; Y = X */

static void told_text(const char *what, OrtStatus *status, const api *a, size_t size,
                      const char *text)
{
    if (status == NULL)
        say(custom_witness, "%s: '%s', size %zu", what, text, size);
    else
        say(custom_witness, "%s: code %d '%s', size %zu", what, a->GetErrorCode(status),
            a->GetErrorMessage(status), size);
    a->ReleaseStatus(status);
}

#define TEXT_OF(function, ...)                                                                     \
    do {                                                                                           \
        char text_[64] = "";                                                                       \
        size_t size_ = 0;                                                                          \
        OrtStatus *status_ = a->function(__VA_ARGS__, NULL, &size_);                               \
        told_text(#function " NULL", status_, a, size_, text_);                                    \
        status_ = a->function(__VA_ARGS__, text_, &size_);                                         \
        told_text(#function, status_, a, size_, text_);                                            \
        size_ = 1;                                                                                 \
        status_ = a->function(__VA_ARGS__, text_, &size_);                                         \
        told_text(#function " short", status_, a, size_, "");                                      \
    } while (0)

static void told_names(const api *a, const OrtKernelInfo *info)
{
    size_t inputs = 0, outputs = 0;
    GOOD(custom_witness, KernelInfo_GetInputCount, info, &inputs);
    GOOD(custom_witness, KernelInfo_GetOutputCount, info, &outputs);
    say(custom_witness, "%zu inputs, %zu outputs", inputs, outputs);
    TEXT_OF(KernelInfo_GetNodeName, info);
    TEXT_OF(KernelInfo_GetOperatorDomain, info);
    TEXT_OF(KernelInfo_GetOperatorType, info);
    for (size_t i = 0; i <= inputs; i++) {
        OrtTypeInfo *type = NULL;
        TEXT_OF(KernelInfo_GetInputName, info, i);
        if (GOOD(custom_witness, KernelInfo_GetInputTypeInfo, info, i, &type))
            say_type(custom_witness, type);
        a->ReleaseTypeInfo(type);
    }
    TEXT_OF(KernelInfo_GetOutputName, info, 0);
    OrtTypeInfo *type = NULL;
    if (GOOD(custom_witness, KernelInfo_GetOutputTypeInfo, info, 0, &type))
        say_type(custom_witness, type);
    a->ReleaseTypeInfo(type);
}

static void told_attributes(const api *a, const OrtKernelInfo *info)
{
    int64_t ints[8] = {0}, number = 0;
    float floats[8] = {0}, real = 0;
    size_t size = 0;
    OrtAllocator *allocator = NULL;
    OrtValue *tensor = NULL;
    char **texts = NULL;
    GOOD(custom_witness, KernelInfoGetAttribute_int64, info, "i", &number);
    GOOD(custom_witness, KernelInfoGetAttribute_float, info, "f", &real);
    GOOD(custom_witness, KernelInfoGetAttribute_int64, info, "none", &number);
    GOOD(custom_witness, KernelInfoGetAttribute_int64, info, "s", &number);
    say(custom_witness, "i %lld, f %g", (long long)number, (double)real);
    TEXT_OF(KernelInfoGetAttribute_string, info, "s");
    GOOD(custom_witness, KernelInfoGetAttributeArray_int64, info, "is", NULL, &size);
    say(custom_witness, "%zu", size);
    GOOD(custom_witness, KernelInfoGetAttributeArray_int64, info, "is", ints, &size);
    size = 1;
    GOOD(custom_witness, KernelInfoGetAttributeArray_int64, info, "is", ints, &size);
    size = 8;
    GOOD(custom_witness, KernelInfoGetAttributeArray_float, info, "fs", floats, &size);
    say(custom_witness, "%lld %lld %g %g %zu", (long long)ints[0], (long long)ints[2],
        (double)floats[0], (double)floats[1], size);
    GOOD(custom_witness, GetAllocatorWithDefaultOptions, &allocator);
    if (GOOD(custom_witness, KernelInfoGetAttributeArray_string, info, "ss", allocator, &texts,
             &size))
        for (size_t i = 0; i < size; i++) {
            say(custom_witness, "'%s'", texts[i]);
            allocator->Free(allocator, texts[i]);
        }
    if (texts)
        allocator->Free(allocator, texts);
    if (GOOD(custom_witness, KernelInfoGetAttribute_tensor, info, "t", allocator, &tensor))
        say_value(custom_witness, tensor);
    a->ReleaseValue(tensor);
}

static OrtStatus *told_create(test_kernel *k, const OrtKernelInfo *info)
{
    const api *a = k->api;
    const OrtLogger *logger = NULL;
    OrtAllocator *allocator = NULL;
    OrtKeyValuePairs *pairs = NULL;
    int level = -1, since = -1;
    if (!custom_witness)
        return NULL;
    told_names(a, info);
    told_attributes(a, info);
    GOOD(custom_witness, KernelInfo_GetOperatorSinceVersion, info, &since);
    GOOD(custom_witness, KernelInfo_GetLogger, info, &logger);
    GOOD(custom_witness, Logger_GetLoggingSeverityLevel, logger, &level);
    GOOD(custom_witness, Logger_LogMessage, logger, ABI_INFO, "quiet", "file", 1, "function");
    GOOD(custom_witness, KernelInfoGetAllocator, info, 0, &allocator);
    if (GOOD(custom_witness, KernelInfo_GetConfigEntries, info, &pairs)) {
        const char *value = a->GetKeyValue(pairs, "session.told");
        say(custom_witness, "since %d, level %d, told '%s'", since, level, value ? value : "none");
    }
    a->ReleaseKeyValuePairs(pairs);
    for (size_t i = 0; i < 3; i++) {
        int constant = -1;
        const OrtValue *value = NULL;
        if (GOOD(custom_witness, KernelInfoGetConstantInput_tensor, info, i, &constant, &value) &&
            constant)
            say_value(custom_witness, value);
        say(custom_witness, "constant %d", constant);
    }
    return a->CopyKernelInfo(info, &k->info);
}

static OrtStatus *told(test_kernel *k, OrtKernelContext *c)
{
    view x, y;
    const OrtLogger *logger = NULL;
    void *block = NULL, *stream = k;
    OrtSyncStream *synced = (OrtSyncStream *)k;
    OrtValue *ready = NULL;
    OrtMemoryInfo *memory = NULL;
    OrtAllocator *allocator = NULL;
    TRY(input(k, c, 0, &x));
    TRY(output(k, c, 0, &x, &y));
    memcpy(y.data, x.data, x.count * sizeof(float));
    TRY(k->api->KernelContext_GetLogger(c, &logger));
    TRY(k->api->CreateCpuMemoryInfo(1, 0, &memory));
    TRY(k->api->KernelContext_GetScratchBuffer(c, memory, 1000, &block));
    TRY(k->api->KernelContext_GetAllocator(c, memory, &allocator));
    TRY(k->api->KernelContext_GetGPUComputeStream(c, &stream));
    TRY(k->api->KernelContext_GetSyncStream(c, &synced));
    TRY(k->api->KernelContext_GetPreallocatedOutput(c, 0, &ready));
    memset(block, 1, 1000);
    k->api->ReleaseMemoryInfo(memory);
    return stream || synced ? k->api->CreateStatus(1, "a stream on the CPU") : NULL;
}

/* ---- Count: how often it ran; Each: X * X over the threads; Twice: X + X by the runtime's Add */

static OrtStatus *count(test_kernel *k, OrtKernelContext *c)
{
    view y, like = {.rank = 0};
    TRY(output(k, c, 0, &like, &y));
    set(&y, 0, (double)k->count);
    return NULL;
}

static void square(void *arg, size_t i)
{
    const view *v = arg;
    set(&v[1], i, get(&v[0], i) * get(&v[0], i));
}

static OrtStatus *each(test_kernel *k, OrtKernelContext *c)
{
    view v[2];
    TRY(input(k, c, 0, &v[0]));
    TRY(output(k, c, 0, &v[0], &v[1]));
    return k->api->KernelContext_ParallelFor(c, square, v[0].count, 3, v);
}

static OrtStatus *twice_create(test_kernel *k, const OrtKernelInfo *info)
{
    const char *names[] = {"T"};
    const int types[] = {1};
    return k->api->CreateOp(info, "Add", "", 14, names, types, 1, NULL, 0, 2, 1, &k->inner);
}

static OrtStatus *twice(test_kernel *k, OrtKernelContext *c)
{
    view x, y;
    TRY(input(k, c, 0, &x));
    TRY(output(k, c, 0, &x, &y));
    const OrtValue *in[] = {x.value, x.value};
    OrtValue *out[] = {(OrtValue *)y.value};
    return k->api->InvokeOp(c, k->inner, in, 2, out, 1);
}

/* ---- refusals */

static OrtStatus *no_create(test_kernel *k, const OrtKernelInfo *info)
{
    return k->api->CreateStatus(ABI_INVALID_ARGUMENT, "this kernel can't be made");
}

static OrtStatus *no_compute(test_kernel *k, OrtKernelContext *c)
{
    return k->api->CreateStatus(ABI_EP_FAIL, "this kernel doesn't run");
}

static OrtStatus *no_shape(const api *a, OrtShapeInferContext *c)
{
    return a->CreateStatus(ABI_INVALID_ARGUMENT, "no shape");
}

/* ---- the list */

enum { ANY, FLOAT = 1, INT64 = 7, STRING = 8, DOUBLE = 11, END = -1 };
#define OP(v)                                                                                      \
    .op = {.version = v, .CreateKernel = create_v1, .GetName = get_name,                           \
           .GetExecutionProviderType = get_provider, .GetInputType = input_type,                   \
           .GetInputTypeCount = input_count, .GetOutputType = output_type,                         \
           .GetOutputTypeCount = output_count, .KernelCompute = compute_v1,                        \
           .KernelDestroy = destroy, .GetInputCharacteristic = input_kind,                         \
           .GetOutputCharacteristic = output_kind, .GetInputMemoryType = memory_type,              \
           .GetVariadicInputMinArity = min_arity, .GetVariadicInputHomogeneity = homogeneous,      \
           .GetVariadicOutputMinArity = one, .GetVariadicOutputHomogeneity = one,                  \
           .CreateKernelV2 = create_v2, .KernelComputeV2 = compute_v2,                             \
           .InferOutputShapeFn = infer, .GetStartVersion = start_version,                          \
           .GetEndVersion = end_version}

static const test_op ops[] = {
    {OP(7), "Scale", {FLOAT, END}, {FLOAT, END}, .create = scale_create, .compute = scale},
    {OP(14), "Scale", {INT64, END}, {INT64, END}, .create = scale_create, .compute = scale},
    {OP(22), "Scale", {DOUBLE, END}, {DOUBLE, END}, .create = scale_create, .compute = scale},
    {OP(22), "Maybe", {FLOAT, FLOAT, END}, {FLOAT, FLOAT, END}, {0, 1}, {0, 1}, .compute = maybe},
    {OP(22), "Total", {FLOAT, END}, {FLOAT, END}, {2}, .min_arity = 2, .compute = total},
    {OP(22), "Sizes", {ANY, END}, {INT64, END}, {2}, .min_arity = 1, .mixed = 1, .compute = sizes},
    {OP(22), "Same", {ANY, END}, {ANY, END}, .compute = same},
    {OP(22), "Shout", {STRING, END}, {STRING, END}, .compute = shout},
    {OP(22), "Widen", {FLOAT, END}, {FLOAT, END}, .create = widen_create, .compute = widen,
     .shape = widen_shape},
    {OP(24), "Told", {FLOAT, FLOAT, FLOAT, END}, {FLOAT, END}, {0, 1, 1}, .create = told_create,
     .compute = told},
    {OP(22), "Count", {FLOAT, END}, {INT64, END}, .compute = count},
    {OP(22), "Each", {FLOAT, END}, {FLOAT, END}, .compute = each},
    {OP(22), "Twice", {FLOAT, END}, {FLOAT, END}, .create = twice_create, .compute = twice},
    {OP(22), "Aged", {FLOAT, END}, {FLOAT, END}, .until = 1, .compute = same},
    {OP(22), "Aged", {FLOAT, END}, {FLOAT, END}, .since = 2, .compute = each},
    {OP(22), "Unmade", {FLOAT, END}, {FLOAT, END}, .create = no_create, .compute = same},
    {OP(22), "Broken", {FLOAT, END}, {FLOAT, END}, .compute = no_compute},
    {OP(22), "Shapeless", {FLOAT, END}, {FLOAT, END}, .compute = same, .shape = no_shape},
};

OrtStatus *custom_register(const api *a, OrtSessionOptions *options, OrtCustomOpDomain **domain)
{
    current = a;
    TRY(a->CreateCustomOpDomain("test", domain));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        TRY(a->CustomOpDomain_Add(*domain, &ops[i].op));
    return a->AddCustomOpDomain(options, *domain);
}

/* ---- as a library */

struct OrtApiBase {
    const OrtApi *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
};

OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base)
{
    static OrtCustomOpDomain *domains[64]; /* kept as long as the library, as many do */
    static size_t used;
    const api *a = (const api *)base->get_api(22);
    return used < 64 ? custom_register(a, options, &domains[used++])
                     : a->CreateStatus(1, "too many registrations for a test");
}
