/* framing.c - where a record of a stream ends (framing.h): sound, .safetensors and JSON, and what
 * all framers share. Those of images are in framing_image.c. */
#include "io/framing.h"

#include <stdlib.h>
#include <string.h>

/* A length that a hostile header claims costs no memory before its bytes are there. */
enum { STEP = 1 << 20 };

static bool reserve(ort_frame *f, size_t more)
{
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
    return f.failed ? count : f.count - f.behind;
}

/* A recorder that writes to a pipe can't know the size: its data goes on to the end. */
static bool is_open_size(uint32_t size)
{
    return size == 0 || size == UINT32_MAX;
}

/* Chunks up to the data, whose own size counts, then the chunks behind it as far as the size of the
 * whole goes. */
void ort_frame_wav(ort_frame *f)
{
    if (!ort_frame_take(f, 12))
        return;
    uint32_t whole = ort_load_u32(f->bytes + 4);
    for (bool data = false; !data;) {
        size_t at = f->count;
        if (!ort_frame_take(f, 8))
            return;
        uint32_t size = ort_load_u32(f->bytes + at + 4);
        data = memcmp(f->bytes + at, "data", 4) == 0;
        if (data && is_open_size(size) && (size || is_open_size(whole) || whole > f->count - 8)) {
            ort_frame_take_rest(f);
            return;
        }
        if (!ort_frame_take(f, (uint64_t)size + size % 2))
            return;
    }
    uint64_t end = (uint64_t)whole + 8 + whole % 2;
    if (!is_open_size(whole) && end > f->count)
        ort_frame_take(f, end - f->count);
}

/* The largest second number of "data_offsets": [begin, end] in the header. The reader parses it;
 * here strings are passed over, so that no name can pose as a key. */
static uint64_t data_size(const char *text, size_t length)
{
    static const char key[] = "data_offsets";
    uint64_t largest = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '"')
            continue;
        size_t begin = ++i;
        while (i < length && text[i] != '"')
            i += text[i] == '\\' ? 2 : 1;
        if (i >= length || i - begin != sizeof key - 1 || memcmp(text + begin, key, i - begin))
            continue;
        size_t at = i + 1 + strspn(text + i + 1, " \t\r\n:[0123456789");
        if (text[at] != ',')
            continue;
        uint64_t end = strtoull(text + at + 1, NULL, 10);
        largest = end > largest ? end : largest;
    }
    return largest;
}

void ort_frame_safetensors(ort_frame *f)
{
    if (!ort_frame_take(f, 8))
        return;
    uint64_t length = ort_load_u64(f->bytes);
    if (!ort_frame_take(f, length) || !reserve(f, 1))
        return;
    f->bytes[f->count] = '\0';
    ort_frame_take(f, data_size((const char *)f->bytes + 8, (size_t)length));
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
