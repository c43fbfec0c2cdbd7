/* options.c - structs with a size: completing shorter ones, refusing what isn't known. */
#include "base/options.h"

#include <string.h>

/* The first member of all of them; a struct of another alignment than size_t's there is none. */
static size_t size_of(const void *object)
{
    size_t size;
    memcpy(&size, object, sizeof size);
    return size;
}

static ort_status without_size(const char *function, const char *what, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_USAGE,
                         "%s: %s has no size; start from its ORT_..._INIT (ort.h)", function, what);
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

const void *ort_options_known(const void *given, void *own, size_t size, const char *function,
                              ort_error *err)
{
    if (!given)
        return own;
    size_t has = size_of(given);
    if (has == size)
        return given;
    if (has < sizeof has) {
        without_size(function, "the struct of options", err);
        return NULL;
    }
    if (has > size) {
        if (is_zero((const unsigned char *)given + size, has - size))
            return given;
        ort_error_set(err, ORT_ERROR_USAGE,
                      "%s: the struct of options has %zu bytes, of which this library (%s) knows "
                      "%zu, and asks for something beyond them",
                      function, has, ort_version(), size);
        return NULL;
    }
    memcpy((char *)own + sizeof has, (const char *)given + sizeof has, has - sizeof has);
    return own;
}

ort_status ort_result_check(const void *result, const char *function, ort_error *err)
{
    if (!result)
        return ort_error_set(err, ORT_ERROR_USAGE, "%s: the result has no place", function);
    return size_of(result) < sizeof(size_t) ? without_size(function, "the result", err) : ORT_OK;
}

ort_status ort_result_give(void *result, const void *own, size_t size, const char *function,
                           ort_error *err)
{
    ORT_TRY(ort_result_check(result, function, err));
    size_t has = size_of(result), head = sizeof has;
    size_t common = has < size ? has : size;
    memcpy((char *)result + head, (const char *)own + head, common - head);
    if (has > size)
        memset((char *)result + size, 0, has - size);
    return ORT_OK;
}
