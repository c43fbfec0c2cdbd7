/* supports.c - what this build runs, as a table for a person and as a page in Markdown: operator,
 * version, types, provider. Both are made from the same report, so neither can know another truth.
 */
#include "common/table.h"
#include "inspect.h"
#include "common/look.h"

/* "yes", "removed" (its domain dropped the operator at this version), or "no". */
static const char *runs_on(json_object *row, const char *provider)
{
    json_object *list = member(row, "providers");
    if (json_object_get_boolean(member(row, "deprecated")))
        return "removed";
    for (size_t i = 0; i < length_of(list); i++)
        if (!strcmp(json_object_get_string(json_object_array_get_idx(list, i)), provider))
            return "yes";
    return "no";
}

static const char *provider_at(json_object *report, size_t index)
{
    return json_object_get_string(json_object_array_get_idx(member(report, "providers"), index));
}

/* ---- counts */

static bool same_operator(json_object *a, json_object *b)
{
    return !strcmp(text_of(a, "domain"), text_of(b, "domain")) &&
           !strcmp(text_of(a, "op_type"), text_of(b, "op_type"));
}

/* Rows of one operator stand together. */
static size_t count_operators(json_object *list)
{
    size_t count = 0;
    for (size_t i = 0; i < length_of(list); i++)
        count += i == 0 || !same_operator(json_object_array_get_idx(list, i),
                                          json_object_array_get_idx(list, i - 1));
    return count;
}

static void put_counts(json_object *report, FILE *stream)
{
    json_object *list = member(report, "operators");
    size_t removed = 0;
    for (size_t i = 0; i < length_of(list); i++)
        removed += json_object_get_boolean(
            member(json_object_array_get_idx(list, i), "deprecated"));
    fprintf(stream, "%zu operators, %zu versions (%zu only say that the operator was removed)",
            count_operators(list), length_of(list), removed);
    for (size_t p = 0; p < length_of(member(report, "providers")); p++) {
        size_t runs = 0;
        for (size_t i = 0; i < length_of(list); i++)
            runs += !strcmp(runs_on(json_object_array_get_idx(list, i), provider_at(report, p)),
                            "yes");
        fprintf(stream, "; %s runs %zu", provider_at(report, p), runs);
    }
    fputc('\n', stream);
}

/* ---- for a person */

int text_supports(const char *json, const char *grep, FILE *stream)
{
    static const char *const heads[] = {"operator", ">since", "provider", "library", "types", NULL};
    json_object *r = look_parse(json, stream);
    if (!r)
        return text_unreadable();
    json_object *list = member(r, "operators");
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *o = json_object_array_get_idx(list, i), *first = member(o, "inputs");
        char *providers = join(member(o, "providers"), ",");
        if (length_of(first) == 0)
            first = member(o, "outputs");
        if (wanted(o, grep)) {
            bool removed = json_object_get_boolean(member(o, "deprecated"));
            table_cellf(t, "%s.%s", text_of(o, "domain"), text_of(o, "op_type"));
            table_cell(t, text_of(o, "since"));
            table_cell(t, removed ? "removed" : *providers ? providers : "none");
            table_cell(t, text_of(o, "library"));
            table_cell(t, text_of(json_object_array_get_idx(first, 0), "types"));
        }
        free(providers);
    }
    fprintf(stream, "version %s, IR up to %s, opsets %s, kernels %s\n", text_of(r, "version"),
            text_of(r, "ir_version"),
            json_object_to_json_string_ext(member(r, "opsets"), JSON_C_TO_STRING_NOSLASHESCAPE),
            text_of(r, "isa"));
    table_print(t, stream);
    put_counts(r, stream);
    table_free(t);
    json_object_put(r);
    return 0;
}

/* ---- Markdown */

static void put_names(json_object *list, const char *types, const char **separator, FILE *stream)
{
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *param = json_object_array_get_idx(list, i);
        if (strcmp(text_of(param, "types"), types))
            continue;
        fprintf(stream, "%s%s", *separator, text_of(param, "name"));
        *separator = ", ";
    }
}

/* Have inputs or outputs before (list, index) the same types? */
static bool seen(json_object *inputs, json_object *list, size_t index, const char *types)
{
    for (size_t i = 0; list != inputs && i < length_of(inputs); i++)
        if (!strcmp(text_of(json_object_array_get_idx(inputs, i), "types"), types))
            return true;
    for (size_t i = 0; i < index; i++)
        if (!strcmp(text_of(json_object_array_get_idx(list, i), "types"), types))
            return true;
    return false;
}

/* "X, W, Y: f16,f32 · mask: bool": parameters that take the same types stand together. */
static void put_types(json_object *row, FILE *stream)
{
    json_object *lists[] = {member(row, "inputs"), member(row, "outputs")};
    const char *gap = "";
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < length_of(lists[l]); i++) {
            const char *types = text_of(json_object_array_get_idx(lists[l], i), "types");
            const char *separator = "";
            if (seen(lists[0], lists[l], i, types))
                continue;
            fputs(gap, stream);
            put_names(lists[0], types, &separator, stream);
            put_names(lists[1], types, &separator, stream);
            fprintf(stream, ": %s", types);
            gap = " · ";
        }
}

static void put_head(json_object *report, const char *domain, FILE *stream)
{
    size_t count = length_of(member(report, "providers"));
    fprintf(stream, "\n## %s\n\n| operator | since | types |", domain);
    for (size_t p = 0; p < count; p++)
        fprintf(stream, " %s |", provider_at(report, p));
    fputs("\n| --- | --: | --- |", stream);
    for (size_t p = 0; p < count; p++)
        fputs(" --- |", stream);
    fputc('\n', stream);
}

int markdown_supports(const char *json, const char *grep, FILE *stream)
{
    json_object *r = look_parse(json, stream);
    const char *domain = "";
    if (!r)
        return text_unreadable();
    json_object *list = member(r, "operators"), *libraries = member(r, "libraries");
    fprintf(stream, "# Operators of version %s\n\nIR up to %s, opsets %s. ",
            text_of(r, "version"), text_of(r, "ir_version"),
            json_object_to_json_string_ext(member(r, "opsets"), JSON_C_TO_STRING_NOSLASHESCAPE));
    put_counts(r, stream);
    for (size_t i = 0; i < length_of(libraries); i++) {
        json_object *l = json_object_array_get_idx(libraries, i);
        fprintf(stream, "\nOperator library %s %s: %s rows.\n", text_of(l, "name"),
                text_of(l, "version"), text_of(l, "rows"));
    }
    fputs("\nTypes are those of the operator's row, by parameter. For every operator of ONNX,\n"
          "`make types` makes a session of each combination of them.\n",
          stream);
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *o = json_object_array_get_idx(list, i);
        if (!wanted(o, grep))
            continue;
        if (strcmp(domain, text_of(o, "domain")))
            put_head(r, text_of(o, "domain"), stream);
        domain = text_of(o, "domain");
        fprintf(stream, "| %s | %s | ", text_of(o, "op_type"), text_of(o, "since"));
        put_types(o, stream);
        fputs(" |", stream);
        for (size_t p = 0; p < length_of(member(r, "providers")); p++)
            fprintf(stream, " %s |", runs_on(o, provider_at(r, p)));
        fputc('\n', stream);
    }
    json_object_put(r);
    return 0;
}
