/* values.c - the value of a record that an option names, and its shape in messages. */
#include <string.h>

#include "draw.h"

const ort_value *draw_value(const ort_tensors *record, const char *option, const char *name)
{
    char list[1200] = "";
    size_t n = ort_tensors_count(record);
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(list);
        if (name[0] == '\0' || !strcmp(ort_tensors_name(record, i), name))
            return ort_tensors_value(record, i);
        snprintf(list + used, sizeof list - used, "%s'%s'", i > 0 ? ", " : "",
                 ort_tensors_name(record, i));
    }
    if (n == 0)
        tool_usage("%s: the record holds no value", option);
    else
        tool_usage("%s: no value is called '%s'; there are %s", option, name, list);
    return NULL;
}

const char *shape_text(const ort_value *v, char *buffer, size_t size)
{
    size_t used = 0;
    if (ort_value_get_kind(v) != ORT_VALUE_TENSOR)
        return "no tensor";
    buffer[0] = '\0';
    for (int i = 0; i < ort_value_rank(v) && used + 24 < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%lld", i > 0 ? "x" : "",
                                 (long long)ort_value_dims(v)[i]);
    return used > 0 ? buffer : "a single number";
}
