/* framing.c - where a record of a stream ends (framing.h): what all framers share, and JSON's. */
#include "io/framing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A length that a hostile header claims costs no memory before its bytes are there. */
enum { STEP = 1 << 20 };

/* Room behind the bytes; false without memory. */
static bool reserve(ort_frame *f, size_t more)
{
    assert(f->count <= f->capacity);
    if (f->failed)
        return false;
    if (more <= f->capacity - f->count)
        return true;
    size_t capacity = f->capacity ? f->capacity : 4096;
    while (capacity - f->count < more)
        capacity *= 2;
    unsigned char *bytes = realloc(f->bytes, capacity);
    if (!bytes) {
        f->failed = true;
        return false;
    }
    f->bytes = bytes;
    f->capacity = capacity;
    return true;
}

bool ort_frame_take(ort_frame *f, uint64_t count)
{
    while (count > 0) {
        size_t part = count < STEP ? (size_t)count : STEP;
        if (!reserve(f, part))
            return false;
        size_t got = ort_input_read(f->in, f->bytes + f->count, part);
        f->count += got;
        assert(f->count <= f->capacity);
        if (got < part)
            return false;
        count -= part;
    }
    return true;
}

void ort_frame_take_rest(ort_frame *f)
{
    while (ort_frame_take(f, STEP))
        continue;
}

ort_status ort_frame_read(ort_input *in, ort_frame_fn *fn, unsigned char **bytes, size_t *count,
                          size_t *behind, ort_error *err)
{
    ort_frame f = {.in = in};
    fn(&f);
    if (f.failed) {
        free(f.bytes);
        return ort_error_memory(err, f.capacity);
    }
    *bytes = f.bytes;
    *count = f.count;
    *behind = f.behind;
    return ORT_OK;
}

typedef struct memory {
    const unsigned char *bytes;
    size_t count;
} memory;

static size_t pull_memory(void *arg, void *bytes, size_t count)
{
    memory *m = arg;
    size_t part = count < m->count ? count : m->count;
    if (part)
        memcpy(bytes, m->bytes, part);
    m->bytes += part;
    m->count -= part;
    return part;
}

size_t ort_frame_measure(const unsigned char *bytes, size_t count, ort_frame_fn *fn)
{
    memory m = {bytes, count};
    ort_input in;
    ort_input_init(&in, pull_memory, &m);
    ort_frame f = {.in = &in};
    fn(&f);
    free(f.bytes);
    assert(f.behind <= f.count);
    return f.failed ? count : f.count - f.behind;
}

/* The line that the text ends: nothing behind its newline is waited for. */
static void take_line_end(ort_frame *f)
{
    while (ort_input_peek(f->in, 1) == 1 && f->in->peeked[0] && strchr(" \t\r\n", f->in->peeked[0]))
        if (!ort_frame_take(f, 1) || f->bytes[f->count - 1] == '\n')
            return;
}

/* To the bracket that closes the first one. */
void ort_frame_json(ort_frame *f)
{
    bool quoted = false;
    size_t depth = 0;
    while (ort_frame_take(f, 1)) {
        char c = (char)f->bytes[f->count - 1];
        if (quoted) {
            if (c == '\\' && !ort_frame_take(f, 1))
                return;
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && depth > 0 && --depth == 0) {
            take_line_end(f);
            return;
        }
    }
}
