/* hashmap.h - byte-string keys to a 64-bit value; open addressing; keys are borrowed (they must
 * outlive the map; arenas do). Iteration order is insertion order, so output is deterministic. */
#ifndef ORT_BASE_HASHMAP_H
#define ORT_BASE_HASHMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ort_hashmap_entry {
    const char *key;
    size_t key_length;
    uint64_t value;
} ort_hashmap_entry;

typedef struct ort_hashmap_slot {
    uint32_t index; /* + 1 into entries; 0: empty */
    uint32_t tag;   /* low bits of the hash: tells most other keys apart without their entries */
} ort_hashmap_slot;

typedef struct ort_hashmap {
    ort_hashmap_entry *entries; /* insertion order, `count` of them */
    ort_hashmap_slot *slots;
    size_t count, capacity, slot_count;
} ort_hashmap; /* all zero is a valid empty map */

/* Insert or overwrite. False when memory is exhausted. */
bool ort_hashmap_put(ort_hashmap *map, const char *key, size_t length, uint64_t value);
bool ort_hashmap_put_str(ort_hashmap *map, const char *key, uint64_t value);
/* Room for so many keys in all. False when memory is exhausted. */
bool ort_hashmap_reserve(ort_hashmap *map, size_t count);
/* True and *value when present (value may be NULL). */
bool ort_hashmap_get(const ort_hashmap *map, const char *key, size_t length, uint64_t *value);
bool ort_hashmap_get_str(const ort_hashmap *map, const char *key, uint64_t *value);
void ort_hashmap_release(ort_hashmap *map);

/* 64-bit hash of bytes, the same on every machine (used for digests too). */
uint64_t ort_hash_bytes(const void *bytes, size_t count, uint64_t seed);

#endif
