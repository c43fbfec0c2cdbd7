/* look.h - looking into the JSON of the library's reports. Absent members are "", 0 or empty lists.
 */
#ifndef COMMON_LOOK_H
#define COMMON_LOOK_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

/* A report, or NULL; for a terminal (screen.h) without the control characters that names in a model
 * may hold. The caller puts it. */
json_object *look_parse(const char *json, FILE *shown);

static inline json_object *member(json_object *object, const char *key)
{
    json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return value;
}

static inline const char *text_of(json_object *object, const char *key)
{
    json_object *value = member(object, key);
    return value ? json_object_get_string(value) : "";
}

static inline double number_of(json_object *object, const char *key)
{
    return json_object_get_double(member(object, key));
}

static inline bool has_number(json_object *object, const char *key)
{
    return member(object, key) && !json_object_is_type(member(object, key), json_type_null);
}

static inline size_t length_of(json_object *array)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

/* "a, b, c" of a list of strings; the caller frees it. */
static inline char *join(json_object *list, const char *separator)
{
    char *text = tool_strdup("");
    for (size_t i = 0; i < length_of(list); i++) {
        const char *item = json_object_get_string(json_object_array_get_idx(list, i));
        char *longer = tool_printf("%s%s%s", text, i ? separator : "", item && *item ? item : "-");
        free(text);
        text = longer;
    }
    return text;
}

/* Does a row hold the text anywhere? */
static inline bool wanted(json_object *row, const char *grep)
{
    return !grep || strstr(json_object_to_json_string_ext(row,
                                                          JSON_C_TO_STRING_NOSLASHESCAPE),
                           grep);
}

#endif
