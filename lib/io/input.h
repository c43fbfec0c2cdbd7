/* input.h - a byte source that knows how far it has read: streams, archive members, memory.
 *
 * Nothing is read ahead but the few bytes that `peek` asked for, so that a stream stands exactly
 * behind a record when its reader returns. Errors of the source and truncation name the byte. */
#ifndef ORT_IO_INPUT_H
#define ORT_IO_INPUT_H

#include <stdio.h>

#include "base/error.h"

/* Up to `count` bytes into `bytes`; fewer only at the end of the source or after an error. */
typedef size_t ort_input_fn(void *arg, void *bytes, size_t count);

typedef struct ort_input {
    ort_input_fn *pull;
    void *arg;
    uint64_t offset;            /* bytes handed out, peeked ones not counted */
    unsigned char peeked[16];
    size_t peeked_count;
} ort_input;

void ort_input_init(ort_input *in, ort_input_fn *pull, void *arg);
void ort_input_init_stream(ort_input *in, FILE *stream);
/* Makes the next bytes (up to 16) visible in in->peeked; returns how many there are. */
size_t ort_input_peek(ort_input *in, size_t count);
size_t ort_input_read(ort_input *in, void *bytes, size_t count);
/* Exactly `count` bytes; ORT_ERROR_DATA "truncated at byte N: WHAT ..." when they end before. */
ort_status ort_input_need(ort_input *in, void *bytes, size_t count, const char *what,
                          ort_error *err);
/* The most bytes that can be left: exact for a regular file, else what a process can hold. */
uint64_t ort_input_left(const ort_input *in);
/* A private map of the next `count` bytes, *before bytes behind its begin, which the caller unmaps;
 * NULL where the source is no regular file that has them. Nothing is taken yet. */
void *ort_input_map(const ort_input *in, size_t count, size_t *before);
/* Takes what was mapped. */
bool ort_input_skip_mapped(ort_input *in, size_t count);
/* The rest of the source, which the caller frees. */
ort_status ort_input_all(ort_input *in, unsigned char **bytes, size_t *count, ort_error *err);

static inline uint16_t ort_load_u16(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t ort_load_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
/* Up to four bytes, of either order. */
static inline uint32_t ort_load_word(const unsigned char *p, int bytes, bool big)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | p[big ? i : bytes - 1 - i];
    return value;
}
static inline uint64_t ort_load_u64(const unsigned char *p)
{
    return (uint64_t)ort_load_u32(p) | (uint64_t)ort_load_u32(p + 4) << 32;
}
static inline void ort_store_u16(unsigned char *p, unsigned value)
{
    p[0] = (unsigned char)value;
    p[1] = (unsigned char)(value >> 8);
}
static inline void ort_store_u32(unsigned char *p, uint32_t value)
{
    ort_store_u16(p, value & 0xffff);
    ort_store_u16(p + 2, value >> 16);
}

#endif
