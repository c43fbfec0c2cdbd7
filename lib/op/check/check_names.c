/* check_names.c - names in a message (check_message.h): sets of them, and which a scope knows. */
#include "base/error.h"
#include "op/check/check_message.h"

bool ort_check_is_known(const ort_name_scope *scope, const char *name)
{
    for (; scope; scope = scope->outer)
        if (ort_hashmap_get_str(&scope->names, name, NULL))
            return true;
    return false;
}

void ort_check_know(ort_message_check *c, ort_name_scope *scope, const char *name)
{
    if (name && *name)
        (void)ort_check_first(c, &scope->names, name);
}

bool ort_check_first(ort_message_check *c, ort_hashmap *seen, const char *name)
{
    size_t known = seen->count;
    if (!ort_hashmap_put_str(seen, name, 1)) {
        c->status = ort_error_memory(c->err, sizeof(ort_hashmap_entry));
        return true;
    }
    return seen->count > known;
}
