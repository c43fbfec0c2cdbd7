/* proto.c - writing protobuf messages: a length stands before what it measures, so a message inside
 * is moved back by the length's own size when it ends. And reading one, field by field.
 */
#include "proto.h"

#include <stdlib.h>
#include <string.h>

static void put(abi_proto *p, const void *bytes, size_t count)
{
    if (!p->failed && count > p->room - p->count) {
        size_t room = 2 * p->room + count + 64;
        unsigned char *grown = realloc(p->bytes, room);
        p->failed = !grown;
        if (grown) {
            p->bytes = grown;
            p->room = room;
        }
    }
    if (p->failed || !count)
        return;
    memcpy(p->bytes + p->count, bytes, count);
    p->count += count;
}

static size_t encode(uint64_t number, unsigned char *out)
{
    size_t n = 0;
    do {
        out[n] = (unsigned char)((number & 127) | (number > 127 ? 128 : 0));
        n++;
        number >>= 7;
    } while (number);
    return n;
}

static void put_number(abi_proto *p, uint64_t number)
{
    unsigned char bytes[10];
    put(p, bytes, encode(number, bytes));
}

static void put_key(abi_proto *p, unsigned field, unsigned wire)
{
    put_number(p, (uint64_t)field << 3 | wire);
}

void abi_proto_number(abi_proto *p, unsigned field, uint64_t number)
{
    put_key(p, field, 0);
    put_number(p, number);
}

void abi_proto_float(abi_proto *p, unsigned field, float number)
{
    put_key(p, field, 5);
    put(p, &number, sizeof number);
}

void abi_proto_bytes(abi_proto *p, unsigned field, const void *bytes, size_t count)
{
    put_key(p, field, 2);
    put_number(p, count);
    put(p, bytes, count);
}

void abi_proto_text(abi_proto *p, unsigned field, const char *text)
{
    abi_proto_bytes(p, field, text, strlen(text));
}

void abi_proto_begin(abi_proto *p, unsigned field)
{
    put_key(p, field, 2);
    if (p->depth == ABI_PROTO_DEPTH)
        p->failed = true;
    else
        p->open[p->depth++] = p->count;
}

void abi_proto_end(abi_proto *p)
{
    if (p->failed)
        return;
    size_t begin = p->open[--p->depth], size = p->count - begin;
    unsigned char length[10];
    size_t n = encode(size, length);
    put(p, length, n); /* makes room */
    if (p->failed)
        return;
    memmove(p->bytes + begin + n, p->bytes + begin, size);
    memcpy(p->bytes + begin, length, n);
}

void abi_proto_raw(abi_proto *p, const void *bytes, size_t count) { put(p, bytes, count); }

static bool read_number(const unsigned char *bytes, size_t count, size_t *at, uint64_t *number)
{
    *number = 0;
    for (int shift = 0; shift <= 63 && *at < count; shift += 7) {
        *number |= (uint64_t)(bytes[*at] & 127) << shift;
        if (!(bytes[(*at)++] & 128))
            return true;
    }
    return false;
}

bool abi_field_read(const unsigned char *bytes, size_t count, size_t at, abi_field *field)
{
    uint64_t key, number = 0;
    field->begin = at;
    if (!read_number(bytes, count, &at, &key) || !(key >> 3) || key >> 3 > UINT32_MAX)
        return false;
    field->number = (unsigned)(key >> 3);
    field->wire = (unsigned)(key & 7);
    if (field->wire == 1 || field->wire == 5)
        number = field->wire == 1 ? 8 : 4;
    else if (field->wire > 2 || !read_number(bytes, count, &at, &number))
        return false;
    field->at = at;
    field->size = field->wire ? (size_t)number : 0;
    field->end = at + field->size;
    return number <= count - at || !field->wire;
}
