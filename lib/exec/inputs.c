/* inputs.c - do these values fit the session's inputs? Every refusal names the input, what it is
 * and what the model wants; symbolic dims must agree between inputs. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "exec/away.h"

#define SYMBOLS_MAX 64

typedef struct symbol {
    uint32_t expr;
    int64_t size;
    int input, axis;
} symbol;

typedef struct checker {
    const ort_session *session;
    ort_value *const *inputs;
    symbol symbols[SYMBOLS_MAX];
    int symbol_count;
} checker;

static ort_status missing(const checker *c, int index, ort_error *err)
{
    ort_strbuf names = {0};
    ort_status status;
    for (int i = 0; i < c->session->input_count; i++)
        ort_strbuf_addf(&names, "%s%s (%s)", i ? ", " : "", c->session->inputs[i].name,
                        c->session->inputs[i].type_text);
    status =
        ort_error_set(err, ORT_ERROR_USAGE, "input '%s' is missing; the model's inputs are: %s",
                      c->session->inputs[index].name, ort_strbuf_text(&names));
    ort_strbuf_release(&names);
    return status;
}

static ort_status wrong(const checker *c, const ort_port *port, const ort_value *value,
                        ort_error *err)
{
    static const char *const kinds[] = {
        [ORT_KIND_NONE] = "absent", [ORT_KIND_SEQUENCE] = "a sequence", [ORT_KIND_MAP] = "a map",
        [ORT_KIND_DEVICE] = "on a device"};
    char shape[256];
    if (ort_value_is_away(value))
        ORT_TRY(ort_device_check(c->session, ort_value_device(value), "input", port->name, err));
    if (value->kind != ORT_KIND_TENSOR)
        return ort_error_set(err, ORT_ERROR_DATA, "input '%s' is %s, the model wants %s",
                             port->name, kinds[value->kind], port->type_text);
    return ort_error_set(err, ORT_ERROR_DATA, "input '%s' is %s[%s], the model wants %s",
                         port->name, ort_dtype_name(value->tensor.dtype),
                         ort_shape_list(&value->tensor.shape, shape, sizeof shape),
                         port->type_text);
}

static ort_status wrong_axis(const ort_port *port, const ort_value *value, int axis, int64_t wanted,
                             ort_error *err)
{
    char shape[256];
    return ort_error_set(err, ORT_ERROR_DATA,
                         "input '%s' is %s[%s], the model wants %s: axis %d is %lld, not %lld",
                         port->name, ort_dtype_name(value->tensor.dtype),
                         ort_shape_list(&value->tensor.shape, shape, sizeof shape), port->type_text,
                         axis, (long long)value->tensor.shape.dim[axis], (long long)wanted);
}

/* The same symbol has the same size everywhere. */
static ort_status check_symbol(checker *c, int index, int axis, ort_dim dim, int64_t size,
                               ort_error *err)
{
    char text[128];
    for (int i = 0; i < c->symbol_count; i++) {
        const symbol *s = &c->symbols[i];
        if (s->expr != dim.expr)
            continue;
        if (s->size == size)
            return ORT_OK;
        return ort_error_set(err, ORT_ERROR_DATA,
                             "input '%s', axis %d ('%s'): size is %lld, but input '%s', axis %d "
                             "has %lld for the same dimension",
                             c->session->inputs[index].name, axis,
                             ort_dim_format(c->session->model->dims, dim, text, sizeof text),
                             (long long)size, c->session->inputs[s->input].name, s->axis,
                             (long long)s->size);
    }
    if (c->symbol_count < SYMBOLS_MAX)
        c->symbols[c->symbol_count++] = (symbol){dim.expr, size, index, axis};
    return ORT_OK;
}

static ort_status check_tensor(checker *c, int index, const ort_type *type, ort_error *err)
{
    const ort_port *port = &c->session->inputs[index];
    const ort_value *value = c->inputs[index];
    const ort_shape *shape = &value->tensor.shape;
    if (type->dtype != ORT_DTYPE_UNDEFINED && type->dtype != value->tensor.dtype)
        return wrong(c, port, value, err);
    if (type->rank < 0)
        return ORT_OK;
    if (type->rank != shape->rank)
        return wrong(c, port, value, err);
    for (int axis = 0; axis < type->rank; axis++) {
        ort_dim dim = type->dim[axis];
        if (ort_dim_known(dim)) {
            if (dim.size != shape->dim[axis])
                return wrong_axis(port, value, axis, dim.size, err);
        } else if (dim.expr != ORT_DIM_UNKNOWN) {
            ORT_TRY(check_symbol(c, index, axis, dim, shape->dim[axis], err));
        }
    }
    return ORT_OK;
}

static ort_status check_input(checker *c, int index, ort_error *err)
{
    const ort_port *port = &c->session->inputs[index];
    const ort_value *value = c->inputs[index];
    const ort_type *type = &port->type;
    if (!value)
        return port->default_value || type->kind == ORT_TYPE_OPTIONAL ? ORT_OK
                                                                        : missing(c, index, err);
    if (type->kind == ORT_TYPE_OPTIONAL) {
        if (value->kind == ORT_KIND_NONE || !type->element)
            return ORT_OK;
        type = type->element;
    }
    switch (type->kind) {
    case ORT_TYPE_TENSOR:
        return value->kind == ORT_KIND_TENSOR ? check_tensor(c, index, type, err)
                                              : wrong(c, port, value, err);
    case ORT_TYPE_SEQUENCE:
        return value->kind == ORT_KIND_SEQUENCE ? ORT_OK : wrong(c, port, value, err);
    case ORT_TYPE_MAP:
        return value->kind == ORT_KIND_MAP ? ORT_OK : wrong(c, port, value, err);
    default:
        return ORT_OK;
    }
}

ort_status ort_exec_check_inputs(const ort_session *session, ort_value *const *inputs,
                                 ort_error *err)
{
    checker c = {.session = session, .inputs = inputs};
    for (int i = 0; i < session->input_count; i++)
        ORT_TRY(check_input(&c, i, err));
    return ORT_OK;
}
