/* session_info.c - what a session says of its inputs, outputs and overridable initializers.
 *
 * An input with a default is no input to the ABI but an overridable initializer, with numbers of
 * its own; runs take both by name.
 */
#include "abi.h"

typedef const char *name_of(const ort_session *session, size_t index);
typedef const ort_type_info *type_of(const ort_session *session, size_t index);

/* `places`: indices of the session's own; NULL: the same. */
static OrtStatus *give_name(const OrtSession *session, const size_t *places, size_t count,
                            size_t index, name_of *name, OrtAllocator *allocator, char **out)
{
    if (index >= count)
        return abi_fail(ABI_FAIL, "index out of range");
    return abi_copy_out(allocator, name(session->session, places ? places[index] : index), out);
}

static OrtStatus *give_type(const OrtSession *session, const size_t *places, size_t count,
                            size_t index, type_of *type, OrtTypeInfo **out)
{
    if (index >= count)
        return abi_fail(ABI_FAIL, "out of index");
    return abi_type_of(type(session->session, places ? places[index] : index), out);
}

OrtStatus *abi_SessionGetInputCount(const OrtSession *session, size_t *out)
{
    *out = session->input_count;
    return NULL;
}

OrtStatus *abi_SessionGetOutputCount(const OrtSession *session, size_t *out)
{
    *out = session->output_count;
    return NULL;
}

OrtStatus *abi_SessionGetOverridableInitializerCount(const OrtSession *session, size_t *out)
{
    *out = session->default_count;
    return NULL;
}

OrtStatus *abi_SessionGetInputName(const OrtSession *session, size_t index, OrtAllocator *allocator,
                                   char **out)
{
    return give_name(session, session->inputs, session->input_count, index, ort_session_input_name,
                     allocator, out);
}

OrtStatus *abi_SessionGetOutputName(const OrtSession *session, size_t index,
                                    OrtAllocator *allocator, char **out)
{
    return give_name(session, NULL, session->output_count, index, ort_session_output_name,
                     allocator, out);
}

OrtStatus *abi_SessionGetOverridableInitializerName(const OrtSession *session, size_t index,
                                                    OrtAllocator *allocator, char **out)
{
    return give_name(session, session->defaults, session->default_count, index,
                     ort_session_input_name, allocator, out);
}

OrtStatus *abi_SessionGetInputTypeInfo(const OrtSession *session, size_t index, OrtTypeInfo **out)
{
    return give_type(session, session->inputs, session->input_count, index, ort_session_input_type,
                     out);
}

OrtStatus *abi_SessionGetOutputTypeInfo(const OrtSession *session, size_t index, OrtTypeInfo **out)
{
    return give_type(session, NULL, session->output_count, index, ort_session_output_type, out);
}

OrtStatus *abi_SessionGetOverridableInitializerTypeInfo(const OrtSession *session, size_t index,
                                                        OrtTypeInfo **out)
{
    return give_type(session, session->defaults, session->default_count, index,
                     ort_session_input_type, out);
}

static OrtStatus *give_memory(size_t have, size_t asked, const OrtMemoryInfo **out)
{
    ABI_CHECK(have == asked,
              "Number of memory infos (%zu) doesn't match those of the session (%zu)", asked, have);
    for (size_t i = 0; i < asked; i++)
        out[i] = &abi_cpu_memory;
    return NULL;
}

OrtStatus *abi_SessionGetMemoryInfoForInputs(const OrtSession *session, const OrtMemoryInfo **out,
                                             size_t count)
{
    return give_memory(session->input_count, count, out);
}

OrtStatus *abi_SessionGetMemoryInfoForOutputs(const OrtSession *session, const OrtMemoryInfo **out,
                                              size_t count)
{
    return give_memory(session->output_count, count, out);
}
