/* single_op.c - writes the few fields of onnx.proto that a model of one operator needs; numbers of
 * fields are named after their messages. */
#include "single_op.h"

#include <stdlib.h>
#include <string.h>

enum { /* onnx.proto */
    MODEL_IR_VERSION = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8,
    OPSET_DOMAIN = 1, OPSET_VERSION = 2,
    GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12,
    NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP_TYPE = 4, NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    ATTRIBUTE_NAME = 1, ATTRIBUTE_I = 3, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20,
    TYPE_INT = 2, TYPE_INTS = 7,
    TENSOR_DIMS = 1, TENSOR_DATA_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW_DATA = 9,
    VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_TYPE_ELEM = 1, TENSOR_TYPE_SHAPE = 2,
    SHAPE_DIM = 1, DIM_VALUE = 1,
};

typedef struct message {
    char *data;
    size_t size;
} message;

static void put(message *m, const void *bytes, size_t count)
{
    m->data = realloc(m->data, m->size + count + 1);
    if (m->data == NULL)
        tool_alloc(SIZE_MAX / 2);
    memcpy(m->data + m->size, bytes, count);
    m->size += count;
}

static void put_varint(message *m, uint64_t n)
{
    unsigned char byte;
    for (; n > 127; n >>= 7) {
        byte = (unsigned char)((n & 127) | 128);
        put(m, &byte, 1);
    }
    byte = (unsigned char)n;
    put(m, &byte, 1);
}

static void put_int(message *m, int field, int64_t value)
{
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, (uint64_t)value);
}

static void put_bytes(message *m, int field, const void *bytes, size_t count)
{
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, count);
    put(m, bytes, count);
}

static void put_text(message *m, int field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

/* Takes the inner message. */
static void put_message(message *m, int field, message inner)
{
    put_bytes(m, field, inner.data ? inner.data : "", inner.size);
    free(inner.data);
}

static message value_info(const char *name, ort_dtype dtype, int rank, const int64_t *dims)
{
    message shape = {0}, tensor = {0}, type = {0}, value = {0};
    for (int i = 0; i < rank; i++) {
        message dim = {0};
        put_int(&dim, DIM_VALUE, dims[i]);
        put_message(&shape, SHAPE_DIM, dim);
    }
    put_int(&tensor, TENSOR_TYPE_ELEM, dtype);
    if (rank >= 0)
        put_message(&tensor, TENSOR_TYPE_SHAPE, shape);
    put_message(&type, TYPE_TENSOR, tensor);
    put_text(&value, VALUE_NAME, name);
    put_message(&value, VALUE_TYPE, type);
    return value;
}

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8; /* 24 bits */
}

static bool is_half(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT16 || dtype == ORT_DTYPE_BFLOAT16;
}

/* Floats between -0.5 and 0.5, 16 bits of either sign between 0.5 and 1, or bytes. */
static message weight(const char *name, ort_dtype dtype, bool any_codes, int rank,
                      const int64_t *dims)
{
    message tensor = {0};
    uint32_t state = 1;
    const uint32_t keep = dtype == ORT_DTYPE_FLOAT16 ? 0x83ff : 0x807f;
    const uint32_t exponent = dtype == ORT_DTYPE_FLOAT16 ? 0x3800 : 0x3f00;
    size_t count = 1, width = dtype == ORT_DTYPE_FLOAT ? sizeof(float) : is_half(dtype) ? 2 : 1;
    for (int i = 0; i < rank; i++) {
        put_int(&tensor, TENSOR_DIMS, dims[i]);
        count *= (size_t)dims[i];
    }
    char *data = tool_alloc(count * width);
    for (size_t i = 0; i < count; i++) {
        if (dtype == ORT_DTYPE_FLOAT)
            ((float *)(void *)data)[i] = (float)draw(&state) / 16777216.0f - 0.5f;
        else if (is_half(dtype))
            ((uint16_t *)(void *)data)[i] = (uint16_t)((draw(&state) >> 8 & keep) | exponent);
        else if (dtype == ORT_DTYPE_INT8 && !any_codes)
            data[i] = (char)((int)(draw(&state) >> 8) % 129 - 64);
        else
            data[i] = (char)(draw(&state) >> 8);
    }
    put_int(&tensor, TENSOR_DATA_TYPE, dtype);
    put_text(&tensor, TENSOR_NAME, name);
    put_bytes(&tensor, TENSOR_RAW_DATA, data, count * width);
    free(data);
    return tensor;
}

static message attribute(const char *name, int count, const int64_t *value)
{
    message a = {0};
    put_text(&a, ATTRIBUTE_NAME, name);
    if (count == 0)
        put_int(&a, ATTRIBUTE_I, value[0]);
    for (int i = 0; i < count; i++)
        put_int(&a, ATTRIBUTE_INTS, value[i]);
    put_int(&a, ATTRIBUTE_TYPE, count == 0 ? TYPE_INT : TYPE_INTS);
    return a;
}

/* name = Cast(from) to float. */
static message cast(const char *from, const char *name)
{
    message node = {0};
    put_text(&node, NODE_INPUT, from);
    put_text(&node, NODE_OUTPUT, name);
    put_text(&node, NODE_OP_TYPE, "Cast");
    put_message(&node, NODE_ATTRIBUTE, attribute("to", 0, (const int64_t[]){ORT_DTYPE_FLOAT}));
    return node;
}

static const char *zero_of(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_INT8 ? "zero_s8" : "zero_u8";
}

static void put_scale_inputs(message *node, ort_dtype dtype)
{
    put_text(node, NODE_INPUT, "scale");
    put_text(node, NODE_INPUT, zero_of(dtype));
}

/* A tensor of one number, all of whose bytes but the last are 0. */
static message number(const char *name, ort_dtype dtype, size_t width, char last)
{
    message tensor = {0};
    char data[4] = {0};
    data[width - 1] = last;
    put_int(&tensor, TENSOR_DATA_TYPE, dtype);
    put_text(&tensor, TENSOR_NAME, name);
    put_bytes(&tensor, TENSOR_RAW_DATA, data, width);
    return tensor;
}

/* What put_scale_inputs names: 2^-5, whose highest byte alone isn't 0, and zeros. */
static void put_scales(message *graph)
{
    put_message(graph, GRAPH_INITIALIZER, number("scale", ORT_DTYPE_FLOAT, sizeof(float), 0x3d));
    put_message(graph, GRAPH_INITIALIZER, number(zero_of(ORT_DTYPE_INT8), ORT_DTYPE_INT8, 1, 0));
    put_message(graph, GRAPH_INITIALIZER, number(zero_of(ORT_DTYPE_UINT8), ORT_DTYPE_UINT8, 1, 0));
}

char *single_op_model(const single_op *op, size_t *size)
{
    static const char *const names[SINGLE_OP_INPUTS] = {"a", "b", "c", "d"};
    static const char *const stored[SINGLE_OP_INPUTS] = {"a16", "b16", "c16", "d16"};
    const char *dot = strrchr(op->op_type, '.');
    message node = {0}, graph = {0}, opset = {0}, model = {0}, values = {0};
    int variables = op->variables > 0 ? op->variables : 1;
    for (int i = 0; i < SINGLE_OP_INPUTS && op->in[i].rank > 0; i++) {
        ort_dtype dtype = op->in[i].dtype ? op->in[i].dtype : ORT_DTYPE_FLOAT;
        put_text(&node, NODE_INPUT, names[i]);
        if (op->quantized)
            put_scale_inputs(&node, dtype);
        if (i < variables)
            put_message(&values, GRAPH_INPUT,
                        value_info(names[i], dtype, op->in[i].rank, op->in[i].dim));
        else
            put_message(&values, GRAPH_INITIALIZER,
                        weight(is_half(dtype) ? stored[i] : names[i], dtype, op->any_codes,
                               op->in[i].rank, op->in[i].dim));
        if (i >= variables && is_half(dtype))
            put_message(&graph, GRAPH_NODE, cast(stored[i], names[i]));
    }
    if (op->quantized) {
        put_scale_inputs(&node, op->out);
        put_scales(&graph);
    }
    put_text(&node, NODE_OUTPUT, "y");
    put_text(&node, NODE_OP_TYPE, dot ? dot + 1 : op->op_type);
    if (dot)
        put_bytes(&node, NODE_DOMAIN, op->op_type, (size_t)(dot - op->op_type));
    for (int i = 0; i < SINGLE_OP_ATTRIBUTES && op->attribute[i].name != NULL; i++)
        put_message(&node, NODE_ATTRIBUTE,
                    attribute(op->attribute[i].name, op->attribute[i].count,
                              op->attribute[i].value));
    put_message(&graph, GRAPH_NODE, node);
    put_text(&graph, GRAPH_NAME, op->op_type);
    put(&graph, values.data, values.size);
    free(values.data);
    put_message(&graph, GRAPH_OUTPUT,
                value_info("y", op->out ? op->out : ORT_DTYPE_FLOAT, -1, NULL));
    if (dot)
        put_bytes(&opset, OPSET_DOMAIN, op->op_type, (size_t)(dot - op->op_type));
    put_int(&opset, OPSET_VERSION, dot ? 1 : 17);
    put_int(&model, MODEL_IR_VERSION, 8);
    put_message(&model, MODEL_GRAPH, graph);
    put_message(&model, MODEL_OPSET, opset);
    *size = model.size;
    return model.data;
}
