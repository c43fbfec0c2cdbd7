/* hashmap.c - open addressing with linear probing over an insertion-ordered entry array.
 *
 * The table is a power of two and at most three quarters full, so a probe always meets an empty
 * slot. The hash reads little-endian words: digests agree on all machines. */
#include "base/hashmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / golden ratio */
#define HASH_OFFSET UINT64_C(0xd1342543de82ef95)

#define SLOTS_MAX (UINT64_C(1) << 32) /* a tag has all bits of a place */

static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load_word(const unsigned char *p, size_t count)
{
    uint64_t word = 0;
    if (count == 8) {
        memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        return word;
    }
    for (size_t i = 0; i < count; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

uint64_t ort_hash_bytes(const void *bytes, size_t count, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t hash = fold(seed ^ HASH_OFFSET, HASH_FACTOR) ^ (uint64_t)count;
    size_t left = count;
    /* The product is added to the word itself: a zero factor must not erase what came before. */
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word = load_word(p, 8);
        hash = fold(hash ^ word, HASH_FACTOR) + (hash << 1 | hash >> 63) + HASH_OFFSET;
    }
    if (left)
        hash = fold(hash ^ load_word(p, left), HASH_FACTOR) + (hash << 1 | hash >> 63);
    hash ^= hash >> 32;
    hash *= HASH_OFFSET;
    hash ^= hash >> 29;
    hash *= HASH_FACTOR;
    return hash ^ (hash >> 32);
}

/* The slot that holds the key, or the empty one where it belongs. */
static size_t find_slot(const ort_hashmap *map, const char *key, size_t length, uint64_t hash)
{
    size_t mask = map->slot_count - 1;
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        ort_hashmap_slot slot = map->slots[at];
        if (slot.index == 0)
            return at;
        if (slot.tag != (uint32_t)hash)
            continue;
        const ort_hashmap_entry *entry = &map->entries[slot.index - 1];
        if (entry->key_length == length && (length == 0 || !memcmp(entry->key, key, length)))
            return at;
    }
}

/* slot_count: a power of two, at most SLOTS_MAX. */
static bool resize(ort_hashmap *map, size_t slot_count)
{
    size_t capacity = slot_count / 4 * 3, mask = slot_count - 1, entry_bytes;
    if (!ort_mul_size(capacity, sizeof *map->entries, &entry_bytes))
        return false;
    ort_hashmap_slot *slots = calloc(slot_count, sizeof *slots);
    ort_hashmap_entry *entries = slots ? realloc(map->entries, entry_bytes) : NULL;
    if (!entries) {
        free(slots);
        return false;
    }
    for (size_t i = 0; i < map->slot_count; i++) {
        if (!map->slots[i].index)
            continue;
        size_t at = map->slots[i].tag & mask;
        while (slots[at].index)
            at = (at + 1) & mask;
        slots[at] = map->slots[i];
    }
    free(map->slots);
    map->entries = entries;
    map->capacity = capacity;
    map->slots = slots;
    map->slot_count = slot_count;
    return true;
}

bool ort_hashmap_reserve(ort_hashmap *map, size_t count)
{
    size_t slot_count = map->slot_count ? map->slot_count : 4;
    if (count > SLOTS_MAX / 4 * 3)
        return false;
    while (slot_count / 4 * 3 < count)
        slot_count *= 2;
    return count <= map->capacity || resize(map, slot_count);
}

bool ort_hashmap_put(ort_hashmap *map, const char *key, size_t length, uint64_t value)
{
    uint64_t hash = ort_hash_bytes(key, length, 0);
    size_t at = 0;
    if (map->slot_count) {
        at = find_slot(map, key, length, hash);
        if (map->slots[at].index) {
            map->entries[map->slots[at].index - 1].value = value;
            return true;
        }
    }
    if (map->count == map->capacity) {
        if (!ort_hashmap_reserve(map, map->count + 1))
            return false;
        at = find_slot(map, key, length, hash);
    }
    map->entries[map->count] = (ort_hashmap_entry){key, length, value};
    map->slots[at] = (ort_hashmap_slot){(uint32_t)++map->count, (uint32_t)hash};
    return true;
}

bool ort_hashmap_put_str(ort_hashmap *map, const char *key, uint64_t value)
{
    return ort_hashmap_put(map, key, strlen(key), value);
}

bool ort_hashmap_get(const ort_hashmap *map, const char *key, size_t length, uint64_t *value)
{
    if (!map->slot_count)
        return false;
    size_t at = find_slot(map, key, length, ort_hash_bytes(key, length, 0));
    if (!map->slots[at].index)
        return false;
    if (value)
        *value = map->entries[map->slots[at].index - 1].value;
    return true;
}

bool ort_hashmap_get_str(const ort_hashmap *map, const char *key, uint64_t *value)
{
    return ort_hashmap_get(map, key, strlen(key), value);
}

void ort_hashmap_release(ort_hashmap *map)
{
    free(map->entries);
    free(map->slots);
    memset(map, 0, sizeof *map);
}
