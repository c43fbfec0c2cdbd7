/* kernel_info.c - what a kernel may ask of its node: attributes, names, types, constant inputs.
 *
 * All of it is copied before the kernel is made, so that a copy of the info costs a reference and
 * outlives node and session.
 */
#include "custom.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------- making */

OrtStatus *abi_view_type(ort_ops_node *node, const ort_ops_tensor *view, OrtTypeInfo **out)
{
    const char *symbols[ABI_MAX_RANK];
    int64_t dims[ABI_MAX_RANK];
    for (int i = 0; i < view->rank; i++) {
        symbols[i] = view->dims[i] < 0 ? node->api->dim_name(node, view->dims[i]) : NULL;
        dims[i] = view->dims[i] < 0 ? -1 : view->dims[i];
    }
    const ort_type_info type = {.kind = ORT_TYPE_TENSOR,
                                .dtype = view->dtype,
                                .rank = view->rank,
                                .dims = dims,
                                .symbols = symbols};
    return abi_type_of(&type, out);
}

/* Numbers stay where they are as long as the kernel; the elements of strings are copied. */
static OrtStatus *read_constant(ort_ops_node *node, const ort_ops_tensor *view, OrtValue *out)
{
    ort_error err = ORT_ERROR_INIT;
    ort_value *value = NULL;
    ort_status status = ORT_OK;
    if (!view->data)
        return NULL;
    size_t bits = (size_t)view->count * (size_t)ort_dtype_bits(view->dtype);
    if (view->dtype == ORT_DTYPE_STRING || !bits)
        status = ort_value_new_tensor(view->dtype, view->rank, view->dims, &value, &err);
    else
        status = ort_value_new_borrowed(view->dtype, view->rank, view->dims, view->data,
                                        (bits + 7) / 8, &value, &err);
    for (int64_t i = 0;
         status == ORT_OK && view->dtype == ORT_DTYPE_STRING && i < view->count; i++) {
        size_t length;
        const char *text = node->api->get_string(view, i, &length);
        status = ort_value_set_string(value, i, text, length, &err);
    }
    *out = (OrtValue){.value = value, .memory = &abi_cpu_memory};
    return status == ORT_OK ? NULL : abi_from_error(&err);
}

static OrtStatus *read_slot(ort_ops_node *node, int index, bool input, abi_slot *slot)
{
    const ort_ops_api *api = node->api;
    const ort_ops_tensor *view = input ? api->input(node, index) : api->output_type(node, index);
    slot->name = strdup(input ? api->input_name(node, index) : api->output_name(node, index));
    if (!slot->name)
        return abi_no_memory();
    if (!view)
        return NULL;
    ABI_TRY(abi_view_type(node, view, &slot->type));
    return input ? read_constant(node, view, &slot->constant) : NULL;
}

static OrtStatus *fill(OrtKernelInfo *info, ort_ops_node *node)
{
    size_t attrs = 0;
    while (node->api->attr_name(node, (int)attrs))
        attrs++;
    info->node = strdup(node->api->node_name(node));
    info->slots = calloc(info->input_count + info->output_count + 1, sizeof *info->slots);
    info->attrs = calloc(attrs + 1, sizeof(OrtOpAttr *));
    if (!info->node || !info->slots || !info->attrs)
        return abi_no_memory();
    for (size_t i = 0; i < info->input_count; i++)
        ABI_TRY(read_slot(node, (int)i, true, &info->slots[i]));
    for (size_t i = 0; i < info->output_count; i++)
        ABI_TRY(read_slot(node, (int)i, false, &info->slots[info->input_count + i]));
    for (size_t i = 0; i < attrs; i++) {
        OrtOpAttr *attr = NULL;
        ABI_TRY(abi_attr_of(node, node->api->attr_name(node, (int)i), &attr));
        if (attr)
            info->attrs[info->attr_count++] = attr;
    }
    return NULL;
}

OrtStatus *abi_kernel_info(const abi_family *family, ort_ops_node *node, OrtKernelInfo **out)
{
    OrtKernelInfo *info = calloc(1, sizeof *info);
    if (!info)
        return abi_no_memory();
    info->users = 1;
    info->family = family;
    info->input_count = (size_t)node->api->input_count(node);
    info->output_count = (size_t)node->api->output_count(node);
    OrtStatus *status = fill(info, node);
    if (status)
        abi_ReleaseKernelInfo(info);
    else
        *out = info;
    return status;
}

OrtStatus *abi_CopyKernelInfo(const OrtKernelInfo *info, OrtKernelInfo **out)
{
    ABI_CHECK(info && out, "info is NULL");
    *out = (OrtKernelInfo *)info;
    __atomic_add_fetch(&(*out)->users, 1, __ATOMIC_RELAXED);
    return NULL;
}

void abi_ReleaseKernelInfo(OrtKernelInfo *info)
{
    if (!info || __atomic_sub_fetch(&info->users, 1, __ATOMIC_ACQ_REL))
        return;
    for (size_t i = 0; info->slots && i < info->input_count + info->output_count; i++) {
        free(info->slots[i].name);
        abi_ReleaseTypeInfo(info->slots[i].type);
        ort_value_free(info->slots[i].constant.value);
    }
    for (size_t i = 0; i < info->attr_count; i++)
        abi_attr_free(info->attrs[i]);
    free(info->slots);
    free(info->attrs);
    free(info->node);
    free(info);
}

/* ---------------------------------------------------------------------------------- attributes */

static OrtStatus *find(const OrtKernelInfo *info, const char *name, char kind,
                       const ort_attribute_spec **out)
{
    ABI_CHECK(info && name, "info or name is NULL");
    for (size_t i = 0; i < info->attr_count; i++) {
        *out = &info->attrs[i]->spec;
        if (strcmp((*out)->name, name))
            continue;
        return (*out)->kind == kind
                   ? NULL
                   : abi_fail(ABI_FAIL, "Attibute name and type don't match: '%s'", name);
    }
    return abi_fail(ABI_FAIL, "No attribute with name:'%s'is defined.", name);
}

OrtStatus *abi_KernelInfoGetAttribute_float(const OrtKernelInfo *info, const char *name, float *out)
{
    const ort_attribute_spec *spec;
    ABI_TRY(find(info, name, 'f', &spec));
    *out = spec->f;
    return NULL;
}

OrtStatus *abi_KernelInfoGetAttribute_int64(const OrtKernelInfo *info, const char *name,
                                            int64_t *out)
{
    const ort_attribute_spec *spec;
    ABI_TRY(find(info, name, 'i', &spec));
    *out = spec->i;
    return NULL;
}

/* The size that is needed, and the elements where there is room for them. */
static OrtStatus *give(const void *from, size_t count, size_t element, void *out, size_t *size)
{
    size_t room = *size;
    *size = count;
    if (!out)
        return NULL;
    ABI_CHECK(room >= count, "Result buffer is not large enough");
    if (count)
        memcpy(out, from, count * element);
    return NULL;
}

static OrtStatus *give_text(const char *text, char *out, size_t *size, const char *what)
{
    ABI_CHECK(size, "size is NULL");
    size_t room = *size;
    *size = strlen(text) + 1;
    if (!out)
        return NULL;
    ABI_CHECK(room >= *size, "Output buffer is not large enough for ::OrtKernelInfo%s", what);
    memcpy(out, text, *size);
    return NULL;
}

OrtStatus *abi_KernelInfoGetAttribute_string(const OrtKernelInfo *info, const char *name, char *out,
                                             size_t *size)
{
    const ort_attribute_spec *spec;
    ABI_TRY(find(info, name, 's', &spec));
    return give(spec->s, spec->lengths[0] + 1, 1, out, size);
}

OrtStatus *abi_KernelInfoGetAttributeArray_float(const OrtKernelInfo *info, const char *name,
                                                 float *out, size_t *size)
{
    const ort_attribute_spec *spec;
    ABI_TRY(find(info, name, 'F', &spec));
    return give(spec->floats, spec->count, sizeof *spec->floats, out, size);
}

OrtStatus *abi_KernelInfoGetAttributeArray_int64(const OrtKernelInfo *info, const char *name,
                                                 int64_t *out, size_t *size)
{
    const ort_attribute_spec *spec;
    ABI_TRY(find(info, name, 'I', &spec));
    return give(spec->ints, spec->count, sizeof *spec->ints, out, size);
}

OrtStatus *abi_KernelInfoGetAttributeArray_string(const OrtKernelInfo *info, const char *name,
                                                  OrtAllocator *allocator, char ***out,
                                                  size_t *size)
{
    const ort_attribute_spec *spec;
    ABI_CHECK(allocator && out && size, "allocator or out is NULL");
    ABI_TRY(find(info, name, 'S', &spec));
    *size = spec->count;
    *out = NULL;
    if (!spec->count)
        return NULL;
    char **list = allocator->Alloc(allocator, spec->count * sizeof *list);
    if (!list)
        return abi_no_memory();
    for (size_t i = 0; i < spec->count; i++) {
        OrtStatus *status = abi_copy_out(allocator, spec->strings[i], &list[i]);
        if (!status)
            continue;
        while (i--)
            allocator->Free(allocator, list[i]);
        allocator->Free(allocator, list);
        return status;
    }
    *out = list;
    return NULL;
}

OrtStatus *abi_KernelInfoGetAttribute_tensor(const OrtKernelInfo *info, const char *name,
                                             OrtAllocator *allocator, OrtValue **out)
{
    const ort_attribute_spec *spec;
    ABI_CHECK(allocator && out, "allocator is NULL");
    ABI_TRY(find(info, name, 't', &spec));
    return abi_wrap(ort_value_retain(spec->t), out);
}

/* ------------------------------------------------------------------------------ names and types */

OrtStatus *abi_KernelInfo_GetInputCount(const OrtKernelInfo *info, size_t *out)
{
    *out = info->input_count;
    return NULL;
}

OrtStatus *abi_KernelInfo_GetOutputCount(const OrtKernelInfo *info, size_t *out)
{
    *out = info->output_count;
    return NULL;
}

static OrtStatus *slot(const OrtKernelInfo *info, size_t index, bool input, const abi_slot **out)
{
    size_t count = input ? info->input_count : info->output_count;
    ABI_CHECK(index < count, "::OrtKernelInfo %s index is out of bounds",
              input ? "input" : "output");
    *out = &info->slots[input ? index : info->input_count + index];
    return NULL;
}

OrtStatus *abi_KernelInfo_GetInputName(const OrtKernelInfo *info, size_t index, char *out,
                                       size_t *size)
{
    const abi_slot *s = NULL;
    ABI_TRY(slot(info, index, true, &s));
    return give_text(s->name, out, size, " input name");
}

OrtStatus *abi_KernelInfo_GetOutputName(const OrtKernelInfo *info, size_t index, char *out,
                                        size_t *size)
{
    const abi_slot *s = NULL;
    ABI_TRY(slot(info, index, false, &s));
    return give_text(s->name, out, size, " output name");
}

static OrtStatus *give_type(const OrtKernelInfo *info, size_t index, bool input, OrtTypeInfo **out)
{
    const abi_slot *s = NULL;
    ABI_TRY(slot(info, index, input, &s));
    if (!s->type)
        return abi_fail(ABI_INVALID_GRAPH, "::OrtKernelInfo %s does not have a type",
                        input ? "input" : "output");
    return abi_type_copy(s->type, out);
}

OrtStatus *abi_KernelInfo_GetInputTypeInfo(const OrtKernelInfo *info, size_t index,
                                           OrtTypeInfo **out)
{
    return give_type(info, index, true, out);
}

OrtStatus *abi_KernelInfo_GetOutputTypeInfo(const OrtKernelInfo *info, size_t index,
                                            OrtTypeInfo **out)
{
    return give_type(info, index, false, out);
}

OrtStatus *abi_KernelInfoGetConstantInput_tensor(const OrtKernelInfo *info, size_t index,
                                                 int *is_constant, const OrtValue **out)
{
    const abi_slot *s = NULL;
    ABI_TRY(slot(info, index, true, &s));
    *is_constant = s->constant.value != NULL;
    *out = s->constant.value ? &s->constant : NULL;
    return NULL;
}

OrtStatus *abi_KernelInfo_GetNodeName(const OrtKernelInfo *info, char *out, size_t *size)
{
    return give_text(info->node, out, size, " node name");
}

OrtStatus *abi_KernelInfo_GetOperatorDomain(const OrtKernelInfo *info, char *out, size_t *size)
{
    return give_text(info->family->domain, out, size, "'s operator domain");
}

OrtStatus *abi_KernelInfo_GetOperatorType(const OrtKernelInfo *info, char *out, size_t *size)
{
    return give_text(info->family->name, out, size, "'s operator type");
}

OrtStatus *abi_KernelInfo_GetOperatorSinceVersion(const OrtKernelInfo *info, int *out)
{
    *out = info->family->since;
    return NULL;
}

OrtStatus *abi_KernelInfo_GetConfigEntries(const OrtKernelInfo *info, OrtKeyValuePairs **out)
{
    ABI_CHECK(info && out, "info is NULL");
    abi_CreateKeyValuePairs(out);
    if (*out && abi_pairs_copy(*out, &info->family->custom->config))
        return NULL;
    abi_ReleaseKeyValuePairs(*out);
    return abi_no_memory();
}

OrtStatus *abi_KernelInfo_GetLogger(const OrtKernelInfo *info, const OrtLogger **out)
{
    ABI_CHECK(info && out, "info is NULL");
    *out = abi_env_logger(info->family->custom->shared);
    return NULL;
}

OrtStatus *abi_KernelInfoGetAllocator(const OrtKernelInfo *info, int mem_type, OrtAllocator **out)
{
    ABI_CHECK(info && out, "info is NULL");
    *out = &abi_default_allocator;
    return NULL;
}
