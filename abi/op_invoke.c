/* op_invoke.c - operators that a kernel calls itself, by name. */
#include "custom.h"

#include <stdlib.h>
#include <string.h>

struct OrtOp {
    ort_env *env;
    char *name, *domain;
    int version;
    size_t input_count, output_count;
    OrtOpAttr **attrs;
    ort_attribute_spec *specs; /* the same as the library takes them */
    size_t attr_count;
};

void abi_ReleaseOp(OrtOp *op)
{
    if (!op)
        return;
    for (size_t i = 0; i < op->attr_count; i++)
        abi_attr_free(op->attrs[i]);
    free(op->attrs);
    free(op->specs);
    free(op->name);
    free(op->domain);
    free(op);
}

static OrtStatus *copy_attrs(OrtOp *op, const OrtOpAttr *const *attrs, size_t count)
{
    op->attrs = calloc(count + 1, sizeof(OrtOpAttr *));
    op->specs = calloc(count + 1, sizeof *op->specs);
    if (!op->attrs || !op->specs)
        return abi_no_memory();
    for (; op->attr_count < count; op->attr_count++) {
        size_t i = op->attr_count;
        ABI_CHECK(attrs[i], "attribute %zu is NULL", i);
        ABI_TRY(abi_attr_copy(&attrs[i]->spec, true, &op->attrs[i]));
        op->specs[i] = op->attrs[i]->spec;
    }
    return NULL;
}

/* What a type variable stands for follows from the inputs. */
OrtStatus *abi_CreateOp(const OrtKernelInfo *info, const char *name, const char *domain,
                        int version, const char **constraints, const int *types,
                        int constraint_count, const OrtOpAttr *const *attrs, int attr_count,
                        int input_count, int output_count, OrtOp **out)
{
    ABI_CHECK(info && name && domain && out, "info, op_name or domain is NULL");
    ABI_CHECK(attr_count >= 0 && input_count >= 0 && output_count > 0, "a count is negative");
    OrtOp *op = calloc(1, sizeof *op);
    if (!op)
        return abi_no_memory();
    op->env = info->family->custom->env;
    op->name = strdup(name);
    op->domain = strdup(strcmp(domain, "ai.onnx") ? domain : "");
    op->version = version;
    op->input_count = (size_t)input_count;
    op->output_count = (size_t)output_count;
    OrtStatus *status = op->name && op->domain ? copy_attrs(op, attrs, (size_t)attr_count)
                                               : abi_no_memory();
    if (status)
        abi_ReleaseOp(op);
    else
        *out = op;
    return status;
}

/* Into the value that the kernel has made for it. */
static OrtStatus *store(const ort_value *made, const OrtValue *to, size_t index)
{
    size_t bytes = ort_value_bytes(made);
    ABI_TRY(abi_check_tensor(to));
    ABI_CHECK(ort_value_dtype(made) == ort_value_dtype(to->value) &&
                  bytes == ort_value_bytes(to->value),
              "InvokeOp: output %zu has another type or size than the value given for it", index);
    ort_error err = ORT_ERROR_INIT;
    for (int64_t i = 0;
         ort_value_dtype(made) == ORT_DTYPE_STRING && i < ort_value_count(made); i++) {
        size_t length;
        const char *text = ort_value_string(made, i, &length);
        if (ort_value_set_string(to->value, i, text, length, &err) != ORT_OK)
            return abi_from_error(&err);
    }
    if (ort_value_dtype(made) != ORT_DTYPE_STRING && bytes)
        memcpy(ort_value_data(to->value), ort_value_data((ort_value *)made), bytes);
    return NULL;
}

static OrtStatus *invoke(const OrtOp *op, const OrtValue *const *inputs,
                         OrtValue *const *outputs, ort_value **values)
{
    ort_error err = ORT_ERROR_INIT;
    ort_value **made = values + op->input_count;
    for (size_t i = 0; i < op->input_count; i++)
        values[i] = inputs[i] ? inputs[i]->value : NULL;
    if (ort_op_run(op->env, op->domain, op->name, op->version, op->specs, op->attr_count, values,
                   op->input_count, made, op->output_count, &err) != ORT_OK)
        return abi_from_error(&err);
    OrtStatus *status = NULL;
    for (size_t i = 0; i < op->output_count; i++) {
        if (!status && outputs[i] && made[i])
            status = store(made[i], outputs[i], i);
        ort_value_free(made[i]);
    }
    return status;
}

OrtStatus *abi_InvokeOp(const OrtKernelContext *context, const OrtOp *op,
                        const OrtValue *const *inputs, int input_count, OrtValue *const *outputs,
                        int output_count)
{
    ABI_CHECK(context && op && inputs && outputs, "context, ort_op or values are NULL");
    ABI_CHECK((size_t)input_count == op->input_count && (size_t)output_count == op->output_count,
              "InvokeOp: %d inputs and %d outputs, the operator was made for %zu and %zu",
              input_count, output_count, op->input_count, op->output_count);
    ort_value **values = calloc(op->input_count + op->output_count, sizeof *values);
    if (!values)
        return abi_no_memory();
    OrtStatus *status = invoke(op, inputs, outputs, values);
    free(values);
    return status;
}
