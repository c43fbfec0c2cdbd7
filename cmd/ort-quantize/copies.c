/* copies.c - weights that the quantized file holds more than once. Codes have one scale a channel,
 * and products have channels along different axes of a weight that they share; others read its
 * floats. The verbs name codes after their weight: w_codes, w_quantized, and w_codes_1 for the
 * next.
 */
#include <stdlib.h>
#include <string.h>

#include "common/look.h"
#include "evaluation.h"

static json_object *named(json_object *index, const char *name, const char *ending, size_t number)
{
    char *text = number ? tool_printf("%s%s_%zu", name, ending, number)
                        : tool_printf("%s%s", name, ending);
    json_object *row = member(index, text);
    free(text);
    return row;
}

static void count_codes(json_object *index, const char *name, const char *ending, weight_copies *c)
{
    for (size_t k = 0;; k++) {
        json_object *row = named(index, name, ending, k);
        if (row == NULL)
            break;
        c->codes++;
        c->bytes += number_of(row, "bytes");
    }
}

static bool has_floats(json_object *row)
{
    const char *type = row ? text_of(row, "type") : "";
    return !strncmp(type, "float", 5) || !strncmp(type, "bfloat", 6);
}

static json_object *index_of(json_object *rows)
{
    json_object *index = json_object_new_object();
    for (size_t i = 0; i < length_of(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i);
        json_object_object_add(index, text_of(row, "name"), json_object_get(row));
    }
    return index;
}

size_t copies_find(const evaluation *e, weight_copies **found)
{
    enum { SMALL = 4096 }; /* bytes of floats: biases and the like */
    json_object *index = index_of(e->sides[INTEGER_SIDE].weights);
    json_object *rows = e->sides[FLOAT_SIDE].weights;
    size_t count = 0;
    *found = tool_alloc((length_of(rows) + 1) * sizeof **found);
    for (size_t i = 0; i < length_of(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i);
        weight_copies c = {.name = text_of(row, "name")};
        json_object *same = member(index, c.name);
        if (number_of(row, "bytes") < SMALL || !has_floats(row))
            continue;
        count_codes(index, c.name, "_codes", &c);
        count_codes(index, c.name, "_quantized", &c);
        c.floats = c.codes > 0 && has_floats(same);
        c.bytes += c.floats ? number_of(same, "bytes") : 0;
        if (c.codes + c.floats > 1)
            (*found)[count++] = c;
    }
    json_object_put(index);
    return count;
}
