/* purpose.c - types of a model in words, and who a value is for (purpose.h). */
#include "io/purpose.h"

#include <string.h>

static bool strip(const char **text, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(*text, prefix, length) != 0)
        return false;
    *text += length;
    return true;
}

/* Commas between the brackets of "float[batch,3]"; a symbol may hold brackets of its own. */
static int count_dims(const char *p)
{
    int rank = p[1] == ']' ? 0 : 1, depth = 0;
    for (; *p; p++) {
        depth += *p == '[' || *p == '(';
        depth -= *p == ']' || *p == ')';
        rank += *p == ',' && depth == 1;
        if (depth == 0)
            return rank;
    }
    return -1;
}

ort_purpose_type ort_purpose_parse(const char *type)
{
    ort_purpose_type t = {.rank = -1};
    char name[32];
    if (!type)
        return t;
    t.optional = strip(&type, "optional(");
    t.sequence = strip(&type, "seq(");
    while (strip(&type, "seq(") || strip(&type, "optional("))
        continue;
    bool map = strip(&type, "map(");
    const char *comma = map ? strchr(type, ',') : NULL;
    if (comma)
        type = comma + 1;
    size_t length = strcspn(type, "[)");
    if (length < sizeof name) {
        memcpy(name, type, length);
        name[length] = '\0';
        t.dtype = ort_dtype_find(name);
    }
    t.tensor = !t.sequence && !map && t.dtype != ORT_DTYPE_UNDEFINED;
    if (t.tensor && type[length] == '[')
        t.rank = count_dims(type + length);
    return t;
}

const ort_purpose *ort_purpose_find(const ort_read_options *options, const char *name,
                                    size_t position)
{
    for (size_t i = 0; name[0] && i < options->purpose_count; i++)
        if (strcmp(options->purposes[i].name, name) == 0)
            return &options->purposes[i];
    return !name[0] && position < options->purpose_count ? &options->purposes[position] : NULL;
}

ort_dtype ort_purpose_dtype(const ort_read_options *options, const ort_purpose *purpose)
{
    if (options->dtype != ORT_DTYPE_UNDEFINED || !purpose)
        return options->dtype;
    return ort_purpose_parse(purpose->type).dtype;
}

void ort_purpose_fit_single(const ort_purpose *purpose, ort_value *value)
{
    if (!purpose || !value || value->kind != ORT_KIND_TENSOR)
        return;
    ort_purpose_type type = ort_purpose_parse(purpose->type);
    if (ort_tensor_count(&value->tensor) != 1 || type.rank < 0 || type.rank > ORT_MAX_RANK)
        return;
    value->tensor.shape.rank = type.rank;
    for (int i = 0; i < type.rank; i++)
        value->tensor.shape.dim[i] = 1;
}
