/* algebra.c - operations that are ONNX operators, run through ort_op_run. */
#include "common/operations.h"

#include <stdlib.h>
#include <string.h>

/* What an operator says of its node, said of the option and the tensor. */
static int op_failed(const operation *op, const ort_value *in, const ort_error *err)
{
    const char *said = strstr(err->message, "): "); /* behind "node #0 (Reshape)" */
    bool misfit = err->status == ORT_ERROR_MODEL || err->status == ORT_ERROR_UNSUPPORTED ||
                  err->status == ORT_ERROR_RUN || err->status == ORT_ERROR_DATA;
    char text[ORT_ERROR_TEXT + 40];
    if (!misfit)
        return tool_fail(err);
    snprintf(text, sizeof text, "another shape or type: %s",
             said != NULL ? said + 3 : err->message);
    return bad_value(op, in, text);
}

static int run_op(operations *o, const operation *op, const char *op_type,
                  const ort_attribute_spec *attributes, size_t count, ort_value *const *inputs,
                  size_t input_count, ort_value **out)
{
    ort_error err = {0};
    ort_env *env;
    int status = operations_env(o, &env);
    if (status != 0)
        return status;
    *out = NULL;
    if (ort_op_run(env, "", op_type, 0, attributes, count, inputs, input_count, out, 1, &err) !=
        ORT_OK)
        return op_failed(op, inputs[0], &err);
    return 0;
}

static int ints_value(const int64_t *ints, int count, ort_value **value)
{
    ort_error err = {0};
    int64_t dims[1] = {count};
    if (ort_value_new_tensor(ORT_DTYPE_INT64, 1, dims, value, &err) != ORT_OK)
        return tool_fail(&err);
    memcpy(ort_value_data(*value), ints, (size_t)count * sizeof *ints);
    return 0;
}

int apply_cast(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    ort_dtype dtype = ort_dtype_parse(op->argument);
    if (dtype == ORT_DTYPE_UNDEFINED)
        return tool_usage("%s: '%s' is no element type such as float, int64, uint8, float16",
                          op->option, op->argument);
    ort_attribute_spec to = {.name = "to", .kind = 'i', .i = dtype};
    return run_op(o, op, "Cast", &to, 1, (ort_value *const[]){(ort_value *)in}, 1, out);
}

/* As ONNX has it: -1 once for what is left, 0 for the size that is there. */
static bool reshape_fits(const ort_value *in, const int64_t *dims, int rank)
{
    int64_t have = (int64_t)ort_value_count(in), named = 1;
    int open = 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0 && i >= ort_value_rank(in))
            return false;
        int64_t dim = dims[i] ? dims[i] : ort_value_dims(in)[i];
        open += dim == -1;
        if (dim != -1 && __builtin_mul_overflow(named, dim, &named))
            return false;
    }
    return open == 0 ? named == have : open == 1 && (named ? have % named == 0 : have == 0);
}

int apply_reshape(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    int64_t dims[16];
    ort_value *shape = NULL;
    int rank = option_parse_dims(op->option, op->argument, dims, 16);
    if (rank < 0)
        return EXIT_USAGE;
    if (!reshape_fits(in, dims, rank))
        return bad_value(op, in, "a shape of as many elements, with one -1 at most");
    int status = ints_value(dims, rank, &shape);
    if (status == 0)
        status = run_op(o, op, "Reshape", NULL, 0, (ort_value *const[]){(ort_value *)in, shape}, 2,
                        out);
    ort_value_free(shape);
    return status;
}

int apply_transpose(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    int64_t perm[16];
    int count = option_parse_dims(op->option, op->argument, perm, 16);
    if (count < 0)
        return EXIT_USAGE;
    unsigned seen = 0;
    for (int i = 0; i < count; i++) {
        perm[i] += perm[i] < 0 ? count : 0;
        if (perm[i] >= 0 && perm[i] < count)
            seen |= 1u << perm[i];
    }
    if (count != ort_value_rank(in) || seen != (1u << count) - 1)
        return bad_value(op, in, "each of its axes once");
    ort_attribute_spec spec = {.name = "perm", .kind = 'I', .ints = perm, .count = (size_t)count};
    return run_op(o, op, "Transpose", &spec, 1, (ort_value *const[]){(ort_value *)in}, 1, out);
}

enum { SLICE_AXES = 16 };

/* What Slice takes, and the axes that single indices drop behind it. */
typedef struct slice {
    int64_t starts[SLICE_AXES], ends[SLICE_AXES], axes[SLICE_AXES], steps[SLICE_AXES];
    int64_t drop[SLICE_AXES];
    int count, dropped;
} slice;

/* "BEGIN:END:STEP" from its first colon; backwards, what isn't given is the other end. */
static const char *parse_span(const char *p, bool begins, int64_t *start, int64_t *end,
                              int64_t *step)
{
    char *stop;
    int64_t v = strtoll(p + 1, &stop, 10);
    bool ends = stop != p + 1;
    if (ends)
        *end = v;
    if (*stop != ':')
        return stop;
    *step = strtoll(stop + 1, &stop, 10);
    if (*step < 0) {
        *start = begins ? *start : INT64_MAX;
        *end = ends ? *end : INT64_MIN;
    }
    return stop;
}

/* A span, or a single index, which drops its axis: up to what follows it. */
static int parse_part(const operation *op, const ort_value *in, const char **at, slice *s)
{
    int n = s->count++;
    char *end = (char *)*at;
    int64_t start = **at == ':' ? 0 : strtoll(*at, &end, 10);
    bool given = end != *at;
    s->starts[n] = start;
    s->ends[n] = INT64_MAX;
    s->steps[n] = 1;
    s->axes[n] = n;
    *at = end;
    if (*end == ':') {
        *at = parse_span(end, given, &s->starts[n], &s->ends[n], &s->steps[n]);
    } else if (given) {
        if (n < ort_value_rank(in) &&
            (start < -ort_value_dims(in)[n] || start >= ort_value_dims(in)[n]))
            return bad_value(op, in, "an index that exists");
        s->ends[n] = start == -1 || start == INT64_MAX ? INT64_MAX : start + 1;
        s->drop[s->dropped++] = n;
    }
    if ((**at != ',' && **at != '\0') || s->steps[n] == 0)
        return tool_usage("%s: '%s' is no slice such as 0,:,2:10", op->option, op->argument);
    *at += **at == ',';
    return 0;
}

static int parse_slice(const operation *op, const ort_value *in, slice *s)
{
    const char *p = op->argument;
    int status = 0;
    *s = (slice){0};
    while (*p != '\0' && s->count < SLICE_AXES && status == 0)
        status = parse_part(op, in, &p, s);
    if (status == 0 && (*p != '\0' || s->count > ort_value_rank(in)))
        status = bad_value(op, in, "as many axes as the slice has");
    return status;
}

static int cut(operations *o, const operation *op, const ort_value *in, const slice *s,
               ort_value **out)
{
    const int64_t *const lists[] = {s->starts, s->ends, s->axes, s->steps};
    ort_value *inputs[5] = {(ort_value *)in};
    int status = 0;
    for (int i = 0; i < 4 && status == 0; i++)
        status = ints_value(lists[i], s->count, &inputs[i + 1]);
    if (status == 0)
        status = run_op(o, op, "Slice", NULL, 0, inputs, 5, out);
    for (int i = 1; i < 5; i++)
        ort_value_free(inputs[i]);
    return status;
}

/* "2,:,0:10:2" as numpy writes it. */
int apply_slice(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    slice s;
    ort_value *part = NULL, *axes = NULL;
    int status = parse_slice(op, in, &s);
    if (status == 0)
        status = cut(o, op, in, &s, s.dropped > 0 ? &part : out);
    if (status != 0 || s.dropped == 0)
        return status;
    status = ints_value(s.drop, s.dropped, &axes);
    if (status == 0)
        status = run_op(o, op, "Squeeze", NULL, 0, (ort_value *const[]){part, axes}, 2, out);
    ort_value_free(part);
    ort_value_free(axes);
    return status;
}

static int parse_axis(const operation *op, const ort_value *in, int64_t *axis)
{
    int rank = ort_value_rank(in);
    if (option_parse_int(op->option, op->argument, -16, 15, axis) != 0)
        return EXIT_USAGE;
    if (*axis < -rank || *axis >= rank)
        return bad_value(op, in, "an axis that exists");
    return 0;
}

int apply_argmax(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    int64_t axis;
    int status = parse_axis(op, in, &axis);
    ort_attribute_spec specs[2] = {{.name = "axis", .kind = 'i', .i = axis},
                                   {.name = "keepdims", .kind = 'i', .i = 0}};
    return status != 0 ? status
                       : run_op(o, op, "ArgMax", specs, 2, (ort_value *const[]){(ort_value *)in}, 1,
                                out);
}

int apply_softmax(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    int64_t axis;
    int status = parse_axis(op, in, &axis);
    ort_attribute_spec spec = {.name = "axis", .kind = 'i', .i = axis};
    return status != 0 ? status
                       : run_op(o, op, "Softmax", &spec, 1, (ort_value *const[]){(ort_value *)in},
                                1, out);
}

int apply_squeeze(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    return run_op(o, op, "Squeeze", NULL, 0, (ort_value *const[]){(ort_value *)in}, 1, out);
}

int apply_unsqueeze(operations *o, const operation *op, const ort_value *in, ort_value **out)
{
    int64_t axes[16];
    ort_value *value = NULL;
    int count = option_parse_dims(op->option, op->argument, axes, 16);
    if (count < 0)
        return EXIT_USAGE;
    unsigned seen = 0;
    int rank = ort_value_rank(in) + count;
    for (int i = 0; i < count; i++) {
        int64_t axis = axes[i] + (axes[i] < 0 ? rank : 0);
        if (axis < 0 || axis >= rank || rank > 16 || seen >> axis & 1u)
            return bad_value(op, in, "axes of the result, each once, 16 at most");
        seen |= 1u << axis;
    }
    int status = ints_value(axes, count, &value);
    if (status == 0)
        status =
            run_op(o, op, "Unsqueeze", NULL, 0, (ort_value *const[]){(ort_value *)in, value}, 2,
                   out);
    ort_value_free(value);
    return status;
}
