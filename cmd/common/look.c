/* look.c - reports read back (look.h). */
#include "common/look.h"

#include "common/screen.h"
#include "common/text.h"

/* As deep as the parser goes: a few levels. */
static void tame(json_object *value)
{
    if (json_object_is_type(value, json_type_string)) {
        char *text = tool_strdup(json_object_get_string(value));
        text_tame(text);
        json_object_set_string(value, text);
        free(text);
    } else if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, key, inner)
        {
            (void)key;
            tame(inner);
        }
    } else {
        for (size_t i = 0; i < length_of(value); i++)
            tame(json_object_array_get_idx(value, i));
    }
}

json_object *look_parse(const char *json, FILE *shown)
{
    json_object *report = json_tokener_parse(json);
    if (screen_width(shown) > 0)
        tame(report);
    return report;
}
