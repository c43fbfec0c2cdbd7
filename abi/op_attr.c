/* op_attr.c - attributes: of nodes, as operators see them, and of clients' own making. Each is a
 * copy in one block of memory, so that a client may keep it.
 */
#include "custom.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------- copies */

static void *copy_bytes(const void *from, size_t bytes)
{
    void *made = malloc(bytes + 1);
    if (made) {
        if (bytes)
            memcpy(made, from, bytes);
        ((char *)made)[bytes] = '\0';
    }
    return made;
}

static size_t length_of(const ort_attribute_spec *spec, size_t i)
{
    const char *text = spec->kind == 's' ? spec->s : spec->strings[i];
    return spec->lengths ? spec->lengths[i] : strlen(text);
}

static bool copy_strings(const ort_attribute_spec *from, ort_attribute_spec *to)
{
    size_t *lengths = calloc(from->count + 1, sizeof *lengths);
    char **strings = calloc(from->count + 1, sizeof *strings);
    to->lengths = lengths;
    to->strings = (const char *const *)strings;
    to->count = 0;
    if (!lengths || !strings)
        return false;
    for (; to->count < from->count; to->count++) {
        lengths[to->count] = length_of(from, to->count);
        strings[to->count] = copy_bytes(from->strings[to->count], lengths[to->count]);
        if (!strings[to->count])
            return false;
    }
    return true;
}

static bool copy_string(const ort_attribute_spec *from, ort_attribute_spec *to)
{
    size_t *length = calloc(1, sizeof *length);
    to->lengths = length;
    if (!length)
        return false;
    *length = length_of(from, 0);
    to->s = copy_bytes(from->s, *length);
    return to->s;
}

static bool copy_tensors(const ort_attribute_spec *from, ort_attribute_spec *to)
{
    ort_value **list = calloc(from->count + 1, sizeof(ort_value *));
    to->tensors = list;
    to->count = 0;
    for (; list && to->count < from->count; to->count++)
        list[to->count] = ort_value_retain(from->tensors[to->count]);
    return list;
}

static bool fill(const ort_attribute_spec *from, ort_attribute_spec *to)
{
    to->kind = from->kind;
    to->i = from->i;
    to->f = from->f;
    to->count = from->count;
    to->name = strdup(from->name);
    switch (from->kind) {
    case 's':
        return copy_string(from, to) && to->name;
    case 'I':
        to->ints = copy_bytes(from->ints, from->count * sizeof *from->ints);
        return to->ints && to->name;
    case 'F':
        to->floats = copy_bytes(from->floats, from->count * sizeof *from->floats);
        return to->floats && to->name;
    case 'S':
        return copy_strings(from, to) && to->name;
    case 't':
        to->t = ort_value_retain(from->t);
        return to->name;
    case 'T':
        return copy_tensors(from, to) && to->name;
    default:
        return to->name;
    }
}

OrtStatus *abi_attr_copy(const ort_attribute_spec *from, bool inside, OrtOpAttr **out)
{
    OrtOpAttr *attr = calloc(1, sizeof *attr);
    if (!attr)
        return abi_no_memory();
    attr->inside = inside;
    if (!fill(from, &attr->spec)) {
        abi_attr_free(attr);
        return abi_no_memory();
    }
    *out = attr;
    return NULL;
}

void abi_attr_free(OrtOpAttr *attr)
{
    if (!attr)
        return;
    const ort_attribute_spec *spec = &attr->spec;
    for (size_t i = 0; spec->strings && i < spec->count; i++)
        free((char *)spec->strings[i]);
    for (size_t i = 0; spec->tensors && i < spec->count; i++)
        ort_value_free(spec->tensors[i]);
    ort_value_free(spec->t);
    free((char *)spec->name);
    free((char *)spec->s);
    free((int64_t *)spec->ints);
    free((float *)spec->floats);
    free((char **)spec->strings);
    free((ort_value **)spec->tensors);
    free((size_t *)spec->lengths);
    free(attr);
}

void abi_ReleaseOpAttr(OrtOpAttr *attr)
{
    if (attr && !attr->inside)
        abi_attr_free(attr);
}

/* -------------------------------------------------------------------------------- of a node */

static ort_value *value_of(const ort_ops_tensor *view)
{
    ort_value *value = NULL;
    ort_error err = ORT_ERROR_INIT;
    if (!view || ort_value_new_tensor(view->dtype, view->rank, view->dims, &value, &err) != ORT_OK)
        return NULL;
    if (view->dtype != ORT_DTYPE_STRING && ort_value_bytes(value))
        memcpy(ort_value_data(value), view->data, ort_value_bytes(value));
    return value;
}

static OrtStatus *read_strings(ort_ops_node *node, const char *name, ort_attribute_spec *spec)
{
    spec->count = node->api->attr_count(node, name);
    spec->strings = node->api->alloc(node, (spec->count + 1) * sizeof *spec->strings);
    spec->lengths = node->api->alloc(node, (spec->count + 1) * sizeof *spec->lengths);
    if (!spec->strings || !spec->lengths)
        return abi_no_memory();
    for (size_t i = 0; i < spec->count; i++)
        ((const char **)spec->strings)[i] =
            node->api->attr_strings_at(node, name, i, (size_t *)&spec->lengths[i]);
    return NULL;
}

static OrtStatus *read_tensor(ort_ops_node *node, const char *name, OrtOpAttr **out)
{
    const ort_ops_tensor *view = node->api->attr_tensor(node, name);
    ort_value *value = value_of(view);
    if (!value)
        return abi_no_memory();
    for (int64_t i = 0; view->dtype == ORT_DTYPE_STRING && i < view->count; i++) {
        size_t length;
        ort_error err = ORT_ERROR_INIT;
        const char *text = node->api->get_string(view, i, &length);
        if (ort_value_set_string(value, i, text, length, &err) != ORT_OK) {
            ort_value_free(value);
            return abi_no_memory();
        }
    }
    OrtStatus *status =
        abi_attr_copy(&(ort_attribute_spec){.name = name, .kind = 't', .t = value}, true, out);
    ort_value_free(value);
    return status;
}

OrtStatus *abi_attr_of(ort_ops_node *node, const char *name, OrtOpAttr **out)
{
    const ort_ops_api *api = node->api;
    size_t length;
    ort_attribute_spec spec = {.name = name, .kind = api->attr_kind(node, name)};
    *out = NULL;
    switch (spec.kind) {
    case 'i':
        spec.i = api->attr_int(node, name);
        break;
    case 'f':
        spec.f = api->attr_float(node, name);
        break;
    case 's':
        spec.s = api->attr_string(node, name, &length);
        spec.lengths = &length;
        break;
    case 'I':
        spec.ints = api->attr_ints(node, name, &spec.count);
        break;
    case 'F':
        spec.floats = api->attr_floats(node, name, &spec.count);
        break;
    case 'S':
        ABI_TRY(read_strings(node, name, &spec));
        break;
    case 't':
        return read_tensor(node, name, out);
    default:
        return NULL; /* graphs and lists of tensors are seen by no function of the ABI */
    }
    return abi_attr_copy(&spec, true, out);
}

/* --------------------------------------------------------------------------- a client's own */

OrtStatus *abi_CreateOpAttr(const char *name, const void *data, int count, int type,
                            OrtOpAttr **out)
{
    ABI_CHECK(name && out && (data || count <= 0), "name or data is NULL");
    ABI_CHECK(count >= 0, "len is negative");
    ort_attribute_spec spec = {.name = name, .count = (size_t)count};
    switch (type) {
    case ABI_ATTR_INT:
        spec.kind = 'i';
        spec.i = *(const int64_t *)data;
        break;
    case ABI_ATTR_INTS:
        spec.kind = 'I';
        spec.ints = data;
        break;
    case ABI_ATTR_FLOAT:
        spec.kind = 'f';
        spec.f = *(const float *)data;
        break;
    case ABI_ATTR_FLOATS:
        spec.kind = 'F';
        spec.floats = data;
        break;
    case ABI_ATTR_STRING:
        spec.kind = 's';
        spec.s = data;
        break;
    case ABI_ATTR_STRINGS:
        spec.kind = 'S';
        spec.strings = data;
        break;
    case ABI_ATTR_TENSOR:
        ABI_TRY(abi_check_tensor(data));
        spec.kind = 't';
        spec.t = ((const OrtValue *)data)->value;
        break;
    default:
        return abi_fail(ABI_FAIL, "Attribute type not supported yet.");
    }
    return abi_attr_copy(&spec, false, out);
}

static OrtStatus *copy_out(const void *from, size_t bytes, void *data, size_t room, size_t *out,
                           const char *what)
{
    *out = bytes;
    ABI_CHECK(room >= bytes, "Size of data not large enough to hold %s.", what);
    if (bytes)
        memcpy(data, from, bytes);
    return NULL;
}

/* All of them, each with its NUL, one behind the other. */
static OrtStatus *copy_texts(const ort_attribute_spec *spec, void *data, size_t room, size_t *out)
{
    size_t bytes = 0;
    for (size_t i = 0; i < spec->count; i++)
        bytes += spec->lengths[i] + 1;
    *out = bytes;
    ABI_CHECK(room >= bytes, "Size of data not large enough to hold the array of strings.");
    for (size_t i = 0; i < spec->count; i++) {
        memcpy(data, spec->strings[i], spec->lengths[i] + 1);
        data = (char *)data + spec->lengths[i] + 1;
    }
    return NULL;
}

OrtStatus *abi_ReadOpAttr(const OrtOpAttr *attr, int type, void *data, size_t room, size_t *out)
{
    static const char kinds[] = "\0iIfFsS";
    static const char *const words[] = {"", "int64", "int64", "float", "float", "string", "string"};
    ABI_CHECK(attr, "Attribute does not exist.");
    const ort_attribute_spec *spec = &attr->spec;
    ABI_CHECK(type > 0 && type < (int)sizeof kinds - 1, "Attribute type %d is unknown", type);
    ABI_CHECK(spec->kind == kinds[type], "Attribute has no %s value.", words[type]);
    switch (spec->kind) {
    case 'i':
        return copy_out(&spec->i, sizeof spec->i, data, room, out, "an int64");
    case 'I':
        return copy_out(spec->ints, spec->count * sizeof *spec->ints, data, room, out,
                        "the array of int64");
    case 'f':
        return copy_out(&spec->f, sizeof spec->f, data, room, out, "a float");
    case 'F':
        return copy_out(spec->floats, spec->count * sizeof *spec->floats, data, room, out,
                        "the array of floats");
    case 's': /* alone without its NUL */
        return copy_out(spec->s, spec->lengths[0], data, room, out, "the string");
    default:
        return copy_texts(spec, data, room, out);
    }
}

OrtStatus *abi_OpAttr_GetName(const OrtOpAttr *attr, const char **out)
{
    ABI_CHECK(attr && out, "attribute is NULL");
    *out = attr->spec.name;
    return NULL;
}

OrtStatus *abi_OpAttr_GetType(const OrtOpAttr *attr, int *out)
{
    ABI_CHECK(attr && out, "attribute is NULL");
    switch (attr->spec.kind) {
    case 'i':
        *out = ABI_ATTR_INT;
        break;
    case 'I':
        *out = ABI_ATTR_INTS;
        break;
    case 'f':
        *out = ABI_ATTR_FLOAT;
        break;
    case 'F':
        *out = ABI_ATTR_FLOATS;
        break;
    case 's':
        *out = ABI_ATTR_STRING;
        break;
    case 'S':
        *out = ABI_ATTR_STRINGS;
        break;
    case 't':
        *out = ABI_ATTR_TENSOR;
        break;
    default:
        *out = ABI_ATTR_UNDEFINED;
        break;
    }
    return NULL;
}

OrtStatus *abi_OpAttr_GetTensorAttributeAsOrtValue(const OrtOpAttr *attr, OrtValue **out)
{
    ABI_CHECK(attr && out, "attribute is NULL");
    ABI_CHECK(attr->spec.t, "The attribute '%s' is no tensor", attr->spec.name);
    return abi_wrap(ort_value_retain(attr->spec.t), out);
}
