/* pairs.c - keys with values: what the ABI hands out as OrtKeyValuePairs, and what options keep as
 * config entries. They are few, so that a list is searched.
 */
#include "abi.h"

#include <stdlib.h>
#include <string.h>

static size_t find(const OrtKeyValuePairs *pairs, const char *key)
{
    size_t i = 0;
    while (i < pairs->count && strcmp(pairs->keys[i], key))
        i++;
    return i;
}

/* Both lists have room for one pair more. */
static bool reserve(OrtKeyValuePairs *pairs)
{
    char **keys = abi_grow(pairs->keys, pairs->count, sizeof *keys);
    if (keys)
        pairs->keys = keys;
    char **values = keys ? abi_grow(pairs->values, pairs->count, sizeof *values) : NULL;
    if (values)
        pairs->values = values;
    return values;
}

bool abi_pairs_set(OrtKeyValuePairs *pairs, const char *key, const char *value)
{
    size_t at = find(pairs, key);
    char *text = strdup(value);
    if (text && at < pairs->count) {
        free(pairs->values[at]);
        pairs->values[at] = text;
        return true;
    }
    char *name = text && reserve(pairs) ? strdup(key) : NULL;
    if (!name) {
        free(text);
        return false;
    }
    pairs->keys[at] = name;
    pairs->values[at] = text;
    pairs->count++;
    return true;
}

OrtStatus *abi_pairs_enter(OrtKeyValuePairs *pairs, const char *key, const char *value)
{
    ABI_CHECK(key && value, "config_key or config_value is NULL");
    ABI_CHECK(*key && strlen(key) <= 1024,
              "Config key is empty or longer than maximum length 1024");
    ABI_CHECK(strlen(value) <= 8192, "Config value is longer than maximum length: 8192");
    return abi_pairs_set(pairs, key, value) ? NULL : abi_no_memory();
}

const char *abi_pairs_get(const OrtKeyValuePairs *pairs, const char *key)
{
    size_t at = find(pairs, key);
    return at < pairs->count ? pairs->values[at] : NULL;
}

bool abi_pairs_copy(OrtKeyValuePairs *to, const OrtKeyValuePairs *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (!abi_pairs_set(to, from->keys[i], from->values[i]))
            return false;
    return true;
}

void abi_pairs_clear(OrtKeyValuePairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        free(pairs->keys[i]);
        free(pairs->values[i]);
    }
    free(pairs->keys);
    free(pairs->values);
    *pairs = (OrtKeyValuePairs){0};
}

/* These return no status: out of memory is a NULL, or a pair that isn't there. */

void abi_CreateKeyValuePairs(OrtKeyValuePairs **out) { *out = calloc(1, sizeof **out); }

void abi_AddKeyValuePair(OrtKeyValuePairs *pairs, const char *key, const char *value)
{
    if (pairs && key && *key && value)
        abi_pairs_set(pairs, key, value);
}

const char *abi_GetKeyValue(const OrtKeyValuePairs *pairs, const char *key)
{
    return pairs && key ? abi_pairs_get(pairs, key) : NULL;
}

void abi_GetKeyValuePairs(const OrtKeyValuePairs *pairs, const char *const **keys,
                          const char *const **values, size_t *count)
{
    *keys = (const char *const *)pairs->keys;
    *values = (const char *const *)pairs->values;
    *count = pairs->count;
}

void abi_RemoveKeyValuePair(OrtKeyValuePairs *pairs, const char *key)
{
    size_t at = pairs && key ? find(pairs, key) : 0;
    if (!pairs || !key || at == pairs->count)
        return;
    free(pairs->keys[at]);
    free(pairs->values[at]);
    pairs->count--;
    memmove(pairs->keys + at, pairs->keys + at + 1, (pairs->count - at) * sizeof(char *));
    memmove(pairs->values + at, pairs->values + at + 1, (pairs->count - at) * sizeof(char *));
}

void abi_ReleaseKeyValuePairs(OrtKeyValuePairs *pairs)
{
    if (pairs)
        abi_pairs_clear(pairs);
    free(pairs);
}
