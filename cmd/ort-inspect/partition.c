/* partition.c - --partition: who runs each node, and why nobody else does; --providers: which
 * devices there are. */
#include "common/table.h"
#include "inspect.h"
#include "common/look.h"

static char *reasons_of(json_object *node)
{
    char *text = tool_strdup("");
    json_object *list = member(node, "refused");
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *one = json_object_array_get_idx(list, i);
        char *more = tool_printf("%s%s%s: %s", text, *text ? "; " : "", text_of(one, "provider"),
                                 text_of(one, "reason"));
        free(text);
        text = more;
    }
    return text;
}

/* "opencl 12.0, cpu 40.2": microseconds by estimate. */
static char *estimates_of(json_object *node)
{
    char *text = tool_strdup("");
    json_object *list = member(node, "estimated_us");
    if (!list)
        return text;
    json_object_object_foreach(list, provider, us)
    {
        char *more = tool_printf("%s%s%s %.1f", text, *text ? ", " : "", provider,
                                 json_object_get_double(us));
        free(text);
        text = more;
    }
    return text;
}

static void put_sum(json_object *r, FILE *stream)
{
    json_object *sum = member(r, "estimated_ms");
    fprintf(stream, "%s\n", text_of(r, "line"));
    if (length_of(member(r, "providers")) > 1)
        fprintf(stream, "by estimate %.3f ms, and %.3f of copies; %.3f on the host alone\n",
                number_of(sum, "nodes"), number_of(sum, "copies"), number_of(sum, "host_alone"));
}

static void put_partition(json_object *r, FILE *stream)
{
    static const char *const heads[] = {"node", "operator", "provider", "estimated us",
                                        "why not another", NULL};
    json_object *list = member(r, "nodes");
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *o = json_object_array_get_idx(list, i);
        bool onnx = !strcmp(text_of(o, "domain"), "ai.onnx");
        char *why = reasons_of(o), *us = estimates_of(o);
        bool both = *text_of(o, "within") && *text_of(o, "name");
        table_cellf(t, "%s%s%s", text_of(o, "within"), both ? "/" : "", text_of(o, "name"));
        table_cellf(t, "%s%s%s", onnx ? "" : text_of(o, "domain"), onnx ? "" : ".",
                    text_of(o, "op_type"));
        table_cell(t, text_of(o, "provider"));
        table_cell(t, us);
        table_cell(t, why);
        free(us);
        free(why);
    }
    table_print(t, stream);
    table_free(t);
    put_sum(r, stream);
}

/* What a provider doesn't say of its device is left out. */
static void put_if_told(json_object *d, const char *before, const char *key, FILE *stream)
{
    if (*text_of(d, key))
        fprintf(stream, "%s%s", before, text_of(d, key));
}

static void put_device(json_object *d, int number, FILE *stream)
{
    fprintf(stream, "  %d  %s (%s)", number, text_of(d, "name"), text_of(d, "kind"));
    put_if_told(d, ", ", "platform", stream);
    put_if_told(d, ", driver ", "driver", stream);
    put_if_told(d, ", ", "version", stream);
    if (number_of(d, "memory_bytes") > 0)
        fprintf(stream, ", %s", text_bytes(number_of(d, "memory_bytes")));
    if (number_of(d, "units") > 0)
        fprintf(stream, ", %.0f units", number_of(d, "units"));
    fprintf(stream, "%s%s\n", json_object_get_boolean(member(d, "float16")) ? ", float16" : "",
            json_object_get_boolean(member(d, "int8_dot")) ? ", int8 dot products" : "");
}

static void put_providers(json_object *r, FILE *stream)
{
    json_object *list = member(r, "providers");
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *p = json_object_array_get_idx(list, i), *devices = member(p, "devices");
        fprintf(stream, "%s: %s\n", text_of(p, "name"), text_of(p, "doc"));
        for (size_t d = 0; d < length_of(devices); d++)
            put_device(json_object_array_get_idx(devices, d), (int)d, stream);
        if (*text_of(p, "problem"))
            fprintf(stream, "  none: %s\n", text_of(p, "problem"));
    }
}

int text_division(const char *json, FILE *stream)
{
    json_object *r = look_parse(json, stream);
    if (!r)
        return text_unreadable();
    if (!strcmp(text_of(r, "report"), "partition"))
        put_partition(r, stream);
    else
        put_providers(r, stream);
    json_object_put(r);
    return 0;
}
