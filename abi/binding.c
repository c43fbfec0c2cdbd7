/* binding.c - IoBinding: the names and values of a run, kept between runs.
 *
 * An output is bound to a value, which each run writes, or to a device: then each run makes a new
 * value, and what the client took of the run before stays as it was.
 */
#include "abi.h"

#include <stdlib.h>
#include <string.h>

typedef struct bound {
    char **names;
    OrtValue **values; /* references of ours; NULL: made by the next run */
    bool *fresh;       /* [i]: bound to the device */
    size_t count;
} bound;

struct OrtIoBinding {
    OrtSession *session;
    bound inputs, outputs;
};

static void clear(bound *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->names[i]);
        abi_ReleaseValue(list->values[i]);
    }
    free(list->names);
    free(list->values);
    free(list->fresh);
    *list = (bound){0};
}

static bool reserve(bound *list)
{
    char **names = abi_grow(list->names, list->count, sizeof *names);
    if (names)
        list->names = names;
    OrtValue **values = names ? abi_grow(list->values, list->count, sizeof *values) : NULL;
    if (values)
        list->values = values;
    bool *fresh = values ? abi_grow(list->fresh, list->count, sizeof *fresh) : NULL;
    if (fresh)
        list->fresh = fresh;
    return fresh;
}

/* A further reference to what `value` holds; NULL stays NULL. */
static OrtStatus *refer(const OrtValue *value, OrtValue **out)
{
    *out = NULL;
    if (!value)
        return NULL;
    ABI_CHECK(value->value, "a sparse tensor can't be bound");
    return abi_wrap(ort_value_retain(value->value), out);
}

static OrtStatus *bind(bound *list, const char *name, const OrtValue *value)
{
    size_t at = 0;
    OrtValue *kept;
    ABI_TRY(refer(value, &kept));
    while (at < list->count && strcmp(list->names[at], name))
        at++;
    if (at == list->count) {
        char *copy = reserve(list) ? strdup(name) : NULL;
        if (!copy) {
            abi_ReleaseValue(kept);
            return abi_no_memory();
        }
        list->names[at] = copy;
        list->values[at] = NULL;
        list->count++;
    }
    abi_ReleaseValue(list->values[at]);
    list->values[at] = kept;
    list->fresh[at] = !kept;
    return NULL;
}

OrtStatus *abi_CreateIoBinding(OrtSession *session, OrtIoBinding **out)
{
    ABI_CHECK(session && out, "session is NULL");
    *out = calloc(1, sizeof **out);
    if (!*out)
        return abi_no_memory();
    (*out)->session = session;
    return NULL;
}

void abi_ReleaseIoBinding(OrtIoBinding *binding)
{
    if (!binding)
        return;
    clear(&binding->inputs);
    clear(&binding->outputs);
    free(binding);
}

OrtStatus *abi_BindInput(OrtIoBinding *binding, const char *name, const OrtValue *value)
{
    ABI_CHECK(binding && name && value, "name or value is NULL");
    if (!abi_session_has(binding->session, name, true))
        return abi_fail(ABI_FAIL, "Failed to find input name in the mapping: %s", name);
    return bind(&binding->inputs, name, value);
}

OrtStatus *abi_BindOutput(OrtIoBinding *binding, const char *name, const OrtValue *value)
{
    ABI_CHECK(binding && name && value, "name or value is NULL");
    return bind(&binding->outputs, name, value);
}

OrtStatus *abi_BindOutputToDevice(OrtIoBinding *binding, const char *name,
                                  const OrtMemoryInfo *memory)
{
    ABI_CHECK(binding && name && memory, "name or memory info is NULL");
    return bind(&binding->outputs, name, NULL);
}

void abi_ClearBoundInputs(OrtIoBinding *binding) { clear(&binding->inputs); }

void abi_ClearBoundOutputs(OrtIoBinding *binding) { clear(&binding->outputs); }

OrtStatus *abi_SynchronizeBoundInputs(OrtIoBinding *binding) { return NULL; }

OrtStatus *abi_SynchronizeBoundOutputs(OrtIoBinding *binding) { return NULL; }

OrtStatus *abi_RunWithBinding(OrtSession *session, const OrtRunOptions *options,
                              const OrtIoBinding *binding)
{
    ABI_CHECK(session && binding, "session or binding is NULL");
    const bound *in = &binding->inputs, *out = &binding->outputs;
    for (size_t i = 0; i < out->count; i++)
        if (out->fresh[i]) {
            abi_ReleaseValue(out->values[i]);
            out->values[i] = NULL;
        }
    return abi_Run(session, options, (const char *const *)in->names,
                   (const OrtValue *const *)in->values, in->count, (const char *const *)out->names,
                   out->count, out->values);
}

/* -------------------------------------------------------------------------- what is bound now */

/* All names in one block without ends, and their lengths in another. */
OrtStatus *abi_GetBoundOutputNames(const OrtIoBinding *binding, OrtAllocator *allocator,
                                   char **buffer, size_t **lengths, size_t *count)
{
    const bound *out = &binding->outputs;
    size_t size = 0, at = 0;
    *buffer = NULL;
    *lengths = NULL;
    *count = out->count;
    if (!out->count)
        return NULL;
    for (size_t i = 0; i < out->count; i++)
        size += strlen(out->names[i]);
    *buffer = allocator->Alloc(allocator, size);
    *lengths = allocator->Alloc(allocator, out->count * sizeof **lengths);
    if (!*buffer || !*lengths) {
        allocator->Free(allocator, *buffer);
        allocator->Free(allocator, *lengths);
        return abi_no_memory();
    }
    for (size_t i = 0; i < out->count; i++) {
        (*lengths)[i] = strlen(out->names[i]);
        memcpy(*buffer + at, out->names[i], (*lengths)[i]);
        at += (*lengths)[i];
    }
    return NULL;
}

OrtStatus *abi_GetBoundOutputValues(const OrtIoBinding *binding, OrtAllocator *allocator,
                                    OrtValue ***out, size_t *count)
{
    const bound *list = &binding->outputs;
    *out = NULL;
    *count = list->count;
    if (!list->count)
        return NULL;
    OrtValue **values = allocator->Alloc(allocator, list->count * sizeof *values);
    OrtStatus *status = values ? NULL : abi_no_memory();
    size_t done = 0;
    while (!status && done < list->count) {
        status = refer(list->values[done], &values[done]);
        done += !status;
    }
    if (!status) {
        *out = values;
        return NULL;
    }
    while (done)
        abi_ReleaseValue(values[--done]);
    if (values)
        allocator->Free(allocator, values);
    return status;
}
