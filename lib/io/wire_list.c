/* wire_list.c - the lists of attributes in the wire format (wire.h): floats, ints and strings stay
 * in the input and are read from there into the model's arrays, once. A forest of trees is
 * megabytes of them, small numbers mostly, in proto2's form: each element a field of its own. */
#include "io/wire_list.h"

#include <assert.h>
#include <string.h>

enum { VARINT_MAX = 10 };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Four elements of a tag and a byte each: is this word that? */
static bool is_four(uint64_t word, uint8_t tag)
{
    return (word & UINT64_C(0x80ff80ff80ff80ff)) == tag * UINT64_C(0x0001000100010001);
}
#endif

/* Behind the varint at `in`; NULL: it is broken. */
static const uint8_t *skip_varint(const uint8_t *in, const uint8_t *stop)
{
    const uint8_t *last = stop - in > VARINT_MAX ? in + VARINT_MAX : stop;
    while (in < last && (*in & 0x80))
        in++;
    return in < last ? in + 1 : NULL;
}

/* Elements of a tag of one byte and a varint. */
static const uint8_t *scan_varints(const uint8_t *in, const uint8_t *stop, size_t *elements)
{
    const uint8_t tag = *in;
    while (in < stop && *in == tag) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        uint64_t word;
        for (; stop - in >= 8; in += 8, *elements += 4) {
            memcpy(&word, in, sizeof word);
            if (!is_four(word, tag))
                break;
        }
        if (in == stop || *in != tag)
            break;
#endif
        const uint8_t *next = skip_varint(in + 1, stop);
        if (!next)
            break;
        in = next;
        ++*elements;
    }
    return in;
}

static const uint8_t *scan_fixed(const uint8_t *in, const uint8_t *stop, size_t width,
                                 size_t *elements)
{
    const uint8_t tag = *in;
    for (; (size_t)(stop - in) > width && *in == tag; in += 1 + width)
        ++*elements;
    return in;
}

/* Texts of fewer than 128 bytes. */
static const uint8_t *scan_texts(const uint8_t *in, const uint8_t *stop, size_t *elements)
{
    const uint8_t tag = *in;
    while (stop - in >= 2 && *in == tag && in[1] < 0x80 && in[1] <= stop - in - 2) {
        in += 2 + (size_t)in[1];
        ++*elements;
    }
    return in;
}

/* To the end of a run of fields with the tag at `in`, which is of one byte. */
static const uint8_t *scan(const uint8_t *in, const uint8_t *stop, size_t *elements)
{
    *elements = 0;
    switch (*in & 7) {
    case 0: return scan_varints(in, stop, elements);
    case 1: return scan_fixed(in, stop, 8, elements);
    case 2: return scan_texts(in, stop, elements);
    case 5: return scan_fixed(in, stop, 4, elements);
    default: return in;
    }
}

size_t ort_wire_list_scan(const uint8_t *bytes, size_t at, size_t end, size_t *elements)
{
    const uint8_t *in = bytes + at, *stop = bytes + end;
    assert(at < end); /* its tag is there */
    *elements = 0;
    if (*in == (ORT_WIRE_FLOATS << 3 | 5) || *in == (ORT_WIRE_INTS << 3 | 0) ||
        *in == (ORT_WIRE_STRINGS << 3 | 2))
        in = scan(in, stop, elements);
    assert(in <= stop);
    return (size_t)(in - bytes);
}

size_t ort_wire_skip_like(const uint8_t *bytes, size_t at, size_t end, uint64_t tag)
{
    size_t elements;
    assert(at <= end);
    if (tag >= 0x80 || at == end || bytes[at] != tag)
        return at;
    return (size_t)(scan(bytes + at, bytes + end, &elements) - bytes);
}

size_t ort_wire_list_count(uint32_t field, const uint8_t *value, size_t count, bool packed)
{
    size_t elements = 0;
    assert(!packed || field != ORT_WIRE_FLOATS || count % 4 == 0); /* check_wire */
    if (!packed || field == ORT_WIRE_FLOATS)
        return packed ? count / 4 : 1;
    for (size_t i = 0; i < count; i++)
        elements += !(value[i] & 0x80);
    return elements;
}

/* ---- reading; the splitter has seen that all of it is well-formed */

static const uint8_t *read_varint(const uint8_t *in, uint64_t *value)
{
    uint64_t v = 0;
    unsigned shift = 0;
    for (; *in & 0x80; in++, shift += 7)
        v |= shift < 64 ? (uint64_t)(*in & 0x7f) << shift : 0;
    v |= shift < 64 ? (uint64_t)*in << shift : 0;
    *value = v;
    return in + 1;
}

/* Small elements four at a time; returns where it stopped. */
static const uint8_t *read_small(const uint8_t *in, const uint8_t *stop, int64_t **out)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint8_t tag = *in;
    int64_t *to = *out;
    for (uint64_t word; stop - in >= 8; in += 8, to += 4) {
        memcpy(&word, in, sizeof word);
        if (!is_four(word, tag))
            break;
        to[0] = (int64_t)(word >> 8 & 0x7f);
        to[1] = (int64_t)(word >> 24 & 0x7f);
        to[2] = (int64_t)(word >> 40 & 0x7f);
        to[3] = (int64_t)(word >> 56);
    }
    *out = to;
#endif
    return in;
}

/* The values of a list of one packed field, to stop; NULL: its elements are a field each. */
static const uint8_t *packed_values(const uint8_t *in)
{
    uint64_t tag, length;
    in = read_varint(in, &tag);
    return (tag & 7) == 2 ? read_varint(in, &length) : NULL;
}

static int64_t *read_ints(const ort_wire_payload *list, int64_t *out)
{
    const uint8_t *in = list->bytes, *stop = in + list->count, *packed = packed_values(in);
    uint64_t tag, value;
    for (; packed && packed < stop; *out++ = (int64_t)value)
        packed = read_varint(packed, &value);
    while (!packed && in < stop) {
        in = read_small(in, stop, &out);
        if (in == stop)
            break;
        in = read_varint(read_varint(in, &tag), &value);
        *out++ = (int64_t)value;
    }
    assert(packed ? packed == stop : in == stop);
    return out;
}

static float *read_floats(const ort_wire_payload *list, float *out)
{
    const uint8_t *in = list->bytes, *stop = in + list->count, *packed = packed_values(in);
    uint64_t tag;
    if (packed) {
        assert((size_t)(stop - packed) % sizeof *out == 0);
        memcpy(out, packed, (size_t)(stop - packed));
        return out + (size_t)(stop - packed) / sizeof *out;
    }
    for (; in < stop; in += sizeof *out) {
        in = read_varint(in, &tag);
        memcpy(out++, in, sizeof *out);
    }
    assert(in == stop);
    return out;
}

void *ort_wire_list_numbers(const ort_wire_payload *list, void *out)
{
    return list->field == ORT_WIRE_INTS ? (void *)read_ints(list, out)
                                        : (void *)read_floats(list, out);
}

ort_string *ort_wire_list_strings(const ort_wire_payload *list, ort_string *out, char *text)
{
    const uint8_t *in = list->bytes, *stop = in + list->count;
    while (in < stop) {
        uint64_t tag, length;
        in = read_varint(read_varint(in, &tag), &length);
        *out++ = (ort_string){text, (size_t)length};
        memcpy(text, in, (size_t)length);
        text[length] = '\0';
        text += length + 1;
        in += length;
    }
    assert(in == stop);
    return out;
}
