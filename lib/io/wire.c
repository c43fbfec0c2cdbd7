/* wire.c - the bounded walker of the protobuf wire format (wire.h).
 *
 * Splitting copies everything but the bulk fields. A nested message keeps the width of its length
 * varint (padded with continuation bytes), so its length can be put in place once it is known
 * without moving what follows: one pass, linear time, nothing is read that isn't copied but lists
 * of attributes, whose elements are counted. Joining takes two passes over the skeleton: sizes
 * first (a stack-shaped list in the order of the walk), then bytes.
 */
#include "io/wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/wire_list.h"
#include "io/wire_schema.h"

static const message_id root_messages[] = {
    [ORT_WIRE_MODEL] = M_MODEL,       [ORT_WIRE_TENSOR] = M_TENSOR,
    [ORT_WIRE_SPARSE] = M_SPARSE,     [ORT_WIRE_SEQUENCE] = M_SEQUENCE,
    [ORT_WIRE_MAP] = M_MAP,           [ORT_WIRE_OPTIONAL] = M_OPTIONAL,
    [ORT_WIRE_FUNCTION] = M_FUNCTION,
};

bool ort_wire_varint(const uint8_t *bytes, size_t count, size_t *at, uint64_t *value)
{
    uint64_t v = 0;
    size_t i = *at;
    assert(i <= count);
    for (unsigned shift = 0; shift < 70 && i < count; shift += 7) {
        uint8_t b = bytes[i++];
        if (shift < 64)
            v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *at = i;
            *value = v;
            return true;
        }
    }
    return false;
}

bool ort_wire_next(const uint8_t *bytes, size_t count, size_t *at, ort_wire_field *f)
{
    uint64_t length = 0;
    *f = (ort_wire_field){.at = *at};
    if (!ort_wire_varint(bytes, count, at, &f->tag))
        return false;
    f->length_at = *at;
    switch (f->tag & 7) {
    case VARINT:
        if (!ort_wire_varint(bytes, count, at, &f->number))
            return false;
        break;
    case FIXED64: length = 8; break;
    case FIXED32: length = 4; break;
    case BYTES:
        if (!ort_wire_varint(bytes, count, at, &length))
            return false;
        break;
    default: return false;
    }
    if (length > count - *at)
        return false;
    f->value = *at;
    *at += (size_t)length;
    f->end = *at;
    return true;
}

void ort_wire_put_varint(ort_strbuf *out, uint64_t value)
{
    while (value >= 0x80) {
        ort_strbuf_add_char(out, (char)(value | 0x80));
        value >>= 7;
    }
    ort_strbuf_add_char(out, (char)value);
}

void ort_wire_put_int(ort_strbuf *out, uint32_t field, int64_t value)
{
    ort_wire_put_varint(out, (uint64_t)field << 3 | VARINT);
    ort_wire_put_varint(out, (uint64_t)value);
}

void ort_wire_put_bytes(ort_strbuf *out, uint32_t field, const void *bytes, size_t count)
{
    ort_wire_put_varint(out, (uint64_t)field << 3 | BYTES);
    ort_wire_put_varint(out, count);
    ort_strbuf_add_bytes(out, bytes, count);
}

/* The field that only skeletons have. */
static bool is_payload(message_id message, uint64_t tag)
{
    return (message == M_TENSOR && tag >> 3 == ORT_WIRE_PAYLOAD) ||
           (message == M_ATTRIBUTE && tag >> 3 == ORT_WIRE_LIST_PAYLOAD);
}

static const field_row *find_field(message_id message, uint32_t number)
{
    const field_row *f = messages[message].fields;
    while (f->number && f->number != number)
        f++;
    return f->number ? f : NULL;
}

/* ---- splitting */

typedef struct splitter {
    const uint8_t *bytes;
    size_t copied;    /* input before this offset is in the skeleton, or deliberately not */
    bool strict;
    ort_wire *wire;
    size_t capacity;
    size_t edits;     /* how often the skeleton became other than the input */
    ort_error *err;
} splitter;

static ort_status broken(splitter *s, message_id message, const field_row *f, size_t at,
                         const char *what)
{
    return ort_error_set(s->err, ORT_ERROR_MODEL, "byte %zu: field %s of %s %s", at,
                         f ? f->name : "(unknown)", messages[message].name, what);
}

/* Room for so many more bytes of skeleton. */
static bool reserve(splitter *s, size_t count)
{
    size_t need = s->wire->skeleton_count + count;
    if (need > s->capacity) {
        size_t larger = need + need / 2 + 4096;
        uint8_t *moved = realloc(s->wire->skeleton, larger);
        if (!moved)
            return false;
        s->wire->skeleton = moved;
        s->capacity = larger;
    }
    return true;
}

/* Copy input [copied, end) to the skeleton. */
static bool flush(splitter *s, size_t end)
{
    assert(end >= s->copied);
    size_t count = end - s->copied;
    if (!reserve(s, count))
        return false;
    if (count)
        memcpy(s->wire->skeleton + s->wire->skeleton_count, s->bytes + s->copied, count);
    s->wire->skeleton_count += count;
    s->copied = end;
    return true;
}

/* Bytes that are not in the input. */
static bool put_text(splitter *s, const ort_strbuf *text, size_t resume)
{
    const uint8_t *input = s->bytes;
    assert(resume >= s->copied); /* what it stands for is behind what was copied */
    if (text->failed)
        return false;
    s->bytes = (const uint8_t *)text->data;
    s->copied = 0;
    bool ok = flush(s, text->length);
    s->bytes = input;
    s->copied = resume;
    s->edits++;
    return ok;
}

/* A field with the index of the payload, in place of input [begin, end). */
static ort_status put_payload(splitter *s, size_t begin, size_t end, uint32_t field,
                              ort_wire_payload payload)
{
    ort_strbuf text = {0};
    assert(begin >= s->copied && end > begin);
    ort_wire_put_int(&text, field, (int64_t)s->wire->payloads.count);
    bool ok = flush(s, begin) && put_text(s, &text, end) &&
              ort_vec_push(&s->wire->payloads, payload);
    ort_strbuf_release(&text);
    return ok ? ORT_OK : ort_error_memory(s->err, s->capacity);
}

static size_t varint_width(uint64_t value)
{
    size_t width = 1;
    while (value >>= 7)
        width++;
    return width;
}

static void patch_length(uint8_t *at, size_t width, uint64_t value)
{
    assert(width > 0 && width >= varint_width(value));
    for (size_t i = 0; i < width; i++, value >>= 7)
        at[i] = (uint8_t)((value & 0x7f) | (i + 1 < width ? 0x80 : 0));
}

static ort_status split_message(splitter *s, message_id message, size_t begin, size_t end,
                                int depth);

static ort_status split_nested(splitter *s, const field_row *f, size_t length_at, size_t value,
                               size_t length, int depth)
{
    size_t edits = s->edits, copied = s->copied;
    assert(length_at >= copied && value > length_at);
    size_t at = s->wire->skeleton_count + (length_at - copied);
    size_t width = value - length_at;
    ORT_TRY(split_message(s, f->message, value, value + length, depth + 1));
    if (s->edits == edits)
        return ORT_OK; /* nothing was taken out: the length stands */
    if (!flush(s, value + length))
        return ort_error_memory(s->err, length);
    assert(s->wire->skeleton_count >= at + width);
    size_t now = s->wire->skeleton_count - (at + width);
    size_t more = varint_width(now) > width ? varint_width(now) - width : 0;
    if (!reserve(s, more))
        return ort_error_memory(s->err, more);
    uint8_t *to = s->wire->skeleton + at;
    if (more) /* many small payloads: rare */
        memmove(to + width + more, to + width, now);
    s->wire->skeleton_count += more;
    patch_length(to, width + more, now);
    return ORT_OK;
}

/* Whether a bulk field leaves the skeleton: when large, and then all later pieces of the same field
 * of this tensor, so that the order of the pieces is known. `taken` has a bit per such field. */
static bool takes_bulk(const field_row *f, size_t count, uint32_t *taken)
{
    if (!f || !f->bulk || (count < ORT_WIRE_BULK_BYTES && !(*taken >> f->number & 1)))
        return false;
    assert(f->number < 32);
    *taken |= 1u << f->number;
    return true;
}

/* One value at *at: its start and bytes; *at moves behind it. */
static ort_status scan_value(splitter *s, message_id message, const field_row *f, unsigned wire,
                             size_t *at, size_t end, size_t *value, size_t *count)
{
    uint64_t v = wire == FIXED64 ? 8 : 4;
    size_t start = *at;
    bool numbered = wire == VARINT || wire == BYTES;
    assert(start <= end);
    if (!numbered && wire != FIXED64 && wire != FIXED32)
        return broken(s, message, f, start, "has an invalid wire type (not an ONNX file?)");
    if (numbered ? !ort_wire_varint(s->bytes, end, at, &v) : end - start < v)
        return broken(s, message, f, start, "is cut off (truncated file?)");
    if (wire == BYTES && v > end - *at)
        return ort_error_set(s->err, ORT_ERROR_MODEL,
                             "byte %zu: field %s of %s needs %llu bytes, %zu are left "
                             "(truncated file?)",
                             start, f ? f->name : "(unknown)", messages[message].name,
                             (unsigned long long)v, end - *at);
    *value = wire == VARINT ? start : *at;
    *count = wire == VARINT ? *at - start : (size_t)v;
    *at = *value + *count;
    return ORT_OK;
}

static bool valid_varints(const uint8_t *bytes, size_t count)
{
    size_t at = 0;
    uint64_t v;
    while (at < count)
        if (!ort_wire_varint(bytes, count, &at, &v))
            return false;
    return true;
}

static ort_status check_wire(splitter *s, message_id message, const field_row *f, unsigned wire,
                             size_t at, size_t value, size_t count)
{
    if (!f)
        return s->strict ? broken(s, message, f, at, "isn't expected") : ORT_OK;
    if (wire == f->wire)
        return ORT_OK;
    if (!f->packed || wire != BYTES)
        return broken(s, message, f, at, "has the wrong wire type (not an ONNX file?)");
    if ((f->wire == FIXED32 && count % 4) || (f->wire == FIXED64 && count % 8))
        return broken(s, message, f, at, "isn't a whole number of elements long");
    /* Bulk varints are checked when they are decoded; here they are not touched. */
    if (f->wire == VARINT && f->bulk != OF_TENSOR && !valid_varints(s->bytes + value, count))
        return broken(s, message, f, at, "holds a broken number");
    return ORT_OK;
}

/* ---- lists of attributes */

/* A long one leaves the skeleton, and then all later pieces of it: *at moves behind them. */
static ort_status split_run(splitter *s, const field_row *f, size_t *at, size_t end,
                            uint32_t *taken)
{
    size_t begin = *at, elements;
    if (!f || f->bulk != LIST)
        return ORT_OK;
    size_t stop = ort_wire_list_scan(s->bytes, begin, end, &elements);
    if (!elements || !takes_bulk(f, stop - begin, taken))
        return ORT_OK;
    *at = stop;
    return put_payload(s, begin, stop, ORT_WIRE_LIST_PAYLOAD,
                       (ort_wire_payload){s->bytes + begin, stop - begin, elements, f->number});
}

/* One field of a list, packed or an element by itself, header and all. */
static ort_status split_piece(splitter *s, const field_row *f, unsigned wire, size_t begin,
                              size_t value, size_t end, uint32_t *taken)
{
    size_t elements = ort_wire_list_count(f->number, s->bytes + value, end - value,
                                          wire != f->wire);
    if (!elements || !takes_bulk(f, end - begin, taken))
        return ORT_OK;
    return put_payload(s, begin, end, ORT_WIRE_LIST_PAYLOAD,
                       (ort_wire_payload){s->bytes + begin, end - begin, elements, f->number});
}

static ort_status split_message(splitter *s, message_id message, size_t begin, size_t end,
                                int depth)
{
    if (depth > ORT_WIRE_MAX_DEPTH)
        return ort_error_set(s->err, ORT_ERROR_MODEL,
                             "byte %zu: messages are nested more than %d deep", begin,
                             ORT_WIRE_MAX_DEPTH);
    uint32_t taken = 0;
    for (size_t at = begin; at < end;) {
        size_t field_at = at, value = 0, count = 0;
        uint64_t tag;
        if (!ort_wire_varint(s->bytes, end, &at, &tag) || tag >> 3 == 0 || tag >> 3 > 536870911)
            return ort_error_set(s->err, ORT_ERROR_MODEL,
                                 "byte %zu: no field of %s begins here (truncated, or not an ONNX "
                                 "file)",
                                 field_at, messages[message].name);
        unsigned wire = (unsigned)(tag & 7);
        const field_row *f = find_field(message, (uint32_t)(tag >> 3));
        size_t value_at = at;
        if (is_payload(message, tag))
            return broken(s, message, f, field_at, "has a number that is reserved");
        size_t run = field_at;
        ORT_TRY(split_run(s, f, &run, end, &taken));
        if (run != field_at) {
            at = run;
            continue;
        }
        ORT_TRY(scan_value(s, message, f, wire, &at, end, &value, &count));
        ORT_TRY(check_wire(s, message, f, wire, field_at, value, count));
        if (f && wire == BYTES && !f->message && !f->packed && !f->bulk) {
            at = ort_wire_skip_like(s->bytes, at, end, tag);
            continue;
        }
        if (f && f->bulk == LIST) {
            ORT_TRY(split_piece(s, f, wire, field_at, value, at, &taken));
        } else if (takes_bulk(f, count, &taken)) {
            ORT_TRY(put_payload(s, field_at, at, ORT_WIRE_PAYLOAD,
                                (ort_wire_payload){s->bytes + value, count, 0, f->number}));
        } else if (f && f->message) {
            ORT_TRY(split_nested(s, f, value_at, value, count, depth));
        }
    }
    return ORT_OK;
}

ort_status ort_wire_split(ort_wire_root root, const uint8_t *bytes, size_t count, bool strict,
                          ort_wire *wire, ort_error *err)
{
    splitter s = {.bytes = bytes, .strict = strict, .wire = wire, .err = err};
    *wire = (ort_wire){0};
    assert((size_t)root < sizeof root_messages / sizeof *root_messages);
    ort_status status = split_message(&s, root_messages[root], 0, count, 1);
    if (status == ORT_OK && !flush(&s, count))
        status = ort_error_memory(err, count);
    if (status != ORT_OK)
        ort_wire_release(wire);
    return status;
}

void ort_wire_release(ort_wire *wire)
{
    free(wire->skeleton);
    ort_vec_release(&wire->payloads);
    *wire = (ort_wire){0};
}

/* ---- joining */

typedef struct joiner {
    const uint8_t *bytes;
    const ort_wire_payload *payloads;
    size_t payload_count;
    ORT_VEC(uint64_t) sizes; /* of messages that hold tensors, in the order of the walk */
    size_t next;             /* second pass: size to use next */
    size_t copied;
    ort_wire_sink *sink;
    void *arg;
    ort_error *err;
} joiner;

/* The message that the field holds, where it is one that can hold a tensor: only these are entered.
 * M_NONE: it holds none. */
static message_id entered(message_id message, const ort_wire_field *f)
{
    const field_row *row = find_field(message, (uint32_t)(f->tag >> 3));
    switch (row ? row->message : M_NONE) {
    case M_GRAPH: case M_NODE: case M_ATTRIBUTE: case M_TENSOR: case M_SPARSE: case M_FUNCTION:
    case M_TRAINING: case M_SEQUENCE: case M_MAP: case M_OPTIONAL:
        return (message_id)row->message;
    default:
        return M_NONE;
    }
}

static ort_status next_field(joiner *j, size_t *at, size_t end, ort_wire_field *f)
{
    return ort_wire_next(j->bytes, end, at, f)
               ? ORT_OK
               : ort_error_set(j->err, ORT_ERROR_MODEL,
                               "internal: the packed message is broken at byte %zu", f->at);
}

static ort_status payload_at(joiner *j, uint64_t index, const ort_wire_payload **payload)
{
    if (index >= j->payload_count)
        return ort_error_set(j->err, ORT_ERROR_MODEL, "internal: payload %llu doesn't exist",
                             (unsigned long long)index);
    *payload = &j->payloads[index];
    return ORT_OK;
}

static ort_status measure(joiner *j, message_id message, size_t begin, size_t end, uint64_t *size)
{
    *size = end - begin;
    for (size_t at = begin; at < end;) {
        ort_wire_field f;
        ORT_TRY(next_field(j, &at, end, &f));
        message_id inner = entered(message, &f);
        if (is_payload(message, f.tag)) {
            const ort_wire_payload *p = NULL;
            ORT_TRY(payload_at(j, f.number, &p));
            *size += p->count + (p->elements ? 0 : 1 + varint_width(p->count)) - (f.end - f.at);
        } else if (inner) {
            size_t slot = j->sizes.count;
            uint64_t bytes = 0;
            if (!ort_vec_push(&j->sizes, 0))
                return ort_error_memory(j->err, slot * sizeof *j->sizes.data);
            ORT_TRY(measure(j, inner, f.value, f.end, &bytes));
            j->sizes.data[slot] = bytes;
            *size += varint_width(bytes) + bytes - (f.end - f.length_at);
        } else {
            at = ort_wire_skip_like(j->bytes, at, end, f.tag);
        }
    }
    return ORT_OK;
}

static ort_status emit_until(joiner *j, size_t end)
{
    size_t begin = j->copied;
    assert(end >= begin);
    j->copied = end;
    return end > begin ? j->sink(j->arg, j->bytes + begin, end - begin, j->err) : ORT_OK;
}

static ort_status emit_varint(joiner *j, uint64_t value)
{
    uint8_t text[10];
    size_t width = varint_width(value);
    patch_length(text, width, value);
    return j->sink(j->arg, text, width, j->err);
}

static ort_status emit(joiner *j, message_id message, size_t begin, size_t end)
{
    for (size_t at = begin; at < end;) {
        ort_wire_field f;
        ORT_TRY(next_field(j, &at, end, &f));
        message_id inner = entered(message, &f);
        if (is_payload(message, f.tag)) {
            const ort_wire_payload *p = NULL;
            ORT_TRY(payload_at(j, f.number, &p));
            ORT_TRY(emit_until(j, f.at));
            if (!p->elements) {
                ORT_TRY(emit_varint(j, (uint64_t)p->field << 3 | BYTES));
                ORT_TRY(emit_varint(j, p->count));
            }
            ORT_TRY(p->count ? j->sink(j->arg, p->bytes, p->count, j->err) : ORT_OK);
            j->copied = f.end;
        } else if (inner) {
            assert(j->next < j->sizes.count);
            ORT_TRY(emit_until(j, f.length_at));
            ORT_TRY(emit_varint(j, j->sizes.data[j->next++]));
            j->copied = f.value;
            ORT_TRY(emit(j, inner, f.value, f.end));
        } else {
            at = ort_wire_skip_like(j->bytes, at, end, f.tag);
        }
    }
    return emit_until(j, end);
}

ort_status ort_wire_join(ort_wire_root root, const uint8_t *skeleton, size_t count,
                         const ort_wire_payload *payloads, size_t payload_count,
                         ort_wire_sink *sink, void *arg, ort_error *err)
{
    joiner j = {.bytes = skeleton, .payloads = payloads, .payload_count = payload_count,
                .sink = sink, .arg = arg, .err = err};
    uint64_t size;
    ort_status status = measure(&j, root_messages[root], 0, count, &size);
    if (status == ORT_OK)
        status = emit(&j, root_messages[root], 0, count);
    assert(status != ORT_OK || (j.next == j.sizes.count && j.copied == count));
    ort_vec_release(&j.sizes);
    return status;
}
