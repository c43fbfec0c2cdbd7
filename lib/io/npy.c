/* npy.c - numpy's array files, versions 1 to 3.
 *
 *     "\x93NUMPY" major minor | header length (u16; u32 from version 2) | Python dict | data
 *
 * Both byte orders, both element orders, byte and UTF-32 strings. Pickled objects are refused: they
 * are programs. Data is read straight into the tensor. */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"
#include "io/format.h"
#include "io/mapped.h"

enum { LONGEST_HEADER = 1 << 20, HEADER_ALIGNMENT = 64 };

typedef struct npy_header {
    bool big_endian;
    bool fortran;
    char kind;      /* 'f', 'i', 'u', 'b', 'c', 'U', 'S', 'V' */
    size_t item;    /* bytes per element (UTF-32 units for 'U') */
    ort_shape shape;
} npy_header;

/* Text after `'key':` in the header's dict; NULL where it isn't, or is there twice: readers would
 * differ in which of them counts. */
static const char *find_key(const char *text, const char *key)
{
    char quoted[32];
    const char *found = NULL;
    for (int i = 0; i < 2; i++) {
        snprintf(quoted, sizeof quoted, i ? "\"%s\"" : "'%s'", key);
        for (const char *at = text; (at = strstr(at, quoted)) != NULL;) {
            at += strlen(quoted);
            at += strspn(at, " ");
            if (*at != ':')
                continue;
            if (found)
                return NULL;
            found = at + 1 + strspn(at + 1, " ");
        }
    }
    return found;
}

static ort_status parse_shape(const char *text, ort_shape *shape, ort_error *err)
{
    const char *p = text ? text : "";
    shape->rank = 0;
    if (*p++ != '(')
        return ort_error_set(err, ORT_ERROR_DATA, "the .npy header has no shape, or two");
    for (;;) {
        p += strspn(p, " ,");
        if (*p == ')')
            return ORT_OK;
        char *end;
        long long dim = strtoll(p, &end, 10);
        if (end == p || dim < 0)
            return ort_error_set(err, ORT_ERROR_DATA, "the .npy header has a malformed shape");
        if (shape->rank == ORT_MAX_RANK)
            return ort_error_set(err, ORT_ERROR_DATA, "the array has more than %d dimensions",
                                 ORT_MAX_RANK);
        shape->dim[shape->rank++] = dim;
        p = *end == 'L' ? end + 1 : end;
    }
}

static ort_status parse_descr(const char *text, npy_header *header, ort_error *err)
{
    if (!text || (*text != '\'' && *text != '"'))
        return ort_error_set(err, ORT_ERROR_DATA, text && *text == '['
                             ? "the array has records of several fields; save one array per field"
                             : "the .npy header has no element type, or two");
    text++;
    header->big_endian = *text == '>';
    if (*text && strchr("<>|=", *text))
        text++;
    header->kind = *text ? *text++ : '?';
    char *end;
    header->item = strtoul(text, &end, 10);
    if (header->kind == 'O')
        return ort_error_set(err, ORT_ERROR_DATA, "the array holds pickled Python objects, which "
                             "are never loaded; save strings with dtype 'U' or 'S'");
    if (!strchr("fiubcUSV", header->kind) || end == text || header->item > INT32_MAX)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "the array's element type '%.20s' has no "
                             "ONNX equivalent", text - 1);
    return ORT_OK;
}

static ort_status parse_header(const char *text, npy_header *header, ort_error *err)
{
    ORT_TRY(parse_descr(find_key(text, "descr"), header, err));
    const char *fortran = find_key(text, "fortran_order");
    if (!fortran || (strncmp(fortran, "True", 4) && strncmp(fortran, "False", 5)))
        return ort_error_set(err, ORT_ERROR_DATA, "the .npy header has no fortran_order, or two");
    header->fortran = *fortran == 'T';
    return parse_shape(find_key(text, "shape"), &header->shape, err);
}

static ort_status read_header(ort_input *in, npy_header *header, ort_error *err)
{
    unsigned char head[12];
    ORT_TRY(ort_input_need(in, head, 10, "the .npy header", err));
    if (memcmp(head, "\x93NUMPY", 6))
        return ort_error_set(err, ORT_ERROR_DATA, "at byte %llu: no .npy array (its first bytes "
                             "must be \\x93NUMPY)", (unsigned long long)in->offset - 10);
    if (head[6] < 1 || head[6] > 3)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, ".npy version %d is unknown; 1 to 3 are "
                             "read", head[6]);
    size_t length = ort_load_u16(head + 8);
    if (head[6] > 1) {
        ORT_TRY(ort_input_need(in, head + 10, 2, "the .npy header", err));
        length = ort_load_u32(head + 8);
    }
    if (length > LONGEST_HEADER)
        return ort_error_set(err, ORT_ERROR_DATA, "the .npy header claims %zu bytes", length);
    char *text = malloc(length + 1);
    if (!text)
        return ort_error_memory(err, length + 1);
    ort_status status = ort_input_need(in, text, length, "the .npy header", err);
    if (status == ORT_OK) {
        text[length] = '\0';
        status = parse_header(text, header, err);
    }
    free(text);
    return status;
}

static ort_dtype dtype_of(const npy_header *header, ort_dtype wanted)
{
    char name[16];
    if (header->kind == 'U' || header->kind == 'S')
        return ORT_DTYPE_STRING;
    if (header->kind == 'V')
        return (size_t)ort_dtype_bits(wanted) == header->item * 8 ? wanted : ORT_DTYPE_UNDEFINED;
    snprintf(name, sizeof name, "%c%d", header->kind, (int)header->item);
    for (int i = 1; i < ORT_DTYPE_COUNT; i++) {
        const char *numpy = ort_dtype_get((ort_dtype)i)->numpy;
        if (numpy && !strcmp(numpy, name))
            return (ort_dtype)i;
    }
    return ORT_DTYPE_UNDEFINED;
}

static void swap_bytes(unsigned char *data, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++, data += size)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            unsigned char byte = data[a];
            data[a] = data[b];
            data[b] = byte;
        }
}

/* Column-major to row-major, in a second buffer. */
static ort_status transpose(void *data, const ort_shape *shape, size_t size, ort_error *err)
{
    int64_t count = ort_shape_count(shape), step[ORT_MAX_RANK], at[ORT_MAX_RANK] = {0};
    size_t bytes = (size_t)count * size;
    char *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        return ort_error_memory(err, bytes);
    memcpy(copy, data, bytes);
    int64_t stride = 1, from = 0;
    for (int i = 0; i < shape->rank; i++) {
        step[i] = stride;
        stride *= shape->dim[i];
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy((char *)data + (size_t)i * size, copy + (size_t)from * size, size);
        for (int axis = shape->rank - 1; axis >= 0; axis--) {
            from += step[axis];
            if (++at[axis] < shape->dim[axis])
                break;
            from -= step[axis] * shape->dim[axis];
            at[axis] = 0;
        }
    }
    assert(from == 0); /* round once */
    free(copy);
    return ORT_OK;
}

static ort_status add_utf32(ort_value *value, int64_t index, const unsigned char *unit,
                            size_t units, ort_error *err)
{
    ort_strbuf text = {0};
    while (units > 0 && ort_load_u32(unit + 4 * (units - 1)) == 0)
        units--; /* numpy pads with NUL */
    for (size_t i = 0; i < units; i++) {
        uint32_t code = ort_load_u32(unit + 4 * i);
        char bytes[4];
        if (code > 0x10ffff) {
            ort_strbuf_release(&text);
            return ort_error_set(err, ORT_ERROR_DATA, "string %lld holds 0x%x, which is no Unicode "
                                 "character", (long long)index, (unsigned)code);
        }
        ort_strbuf_add_bytes(&text, bytes, ort_utf8_encode(code, bytes));
    }
    ort_status status = text.failed ? ort_error_memory(err, units * 4)
                                    : ort_value_set_string_(value, index, ort_strbuf_text(&text),
                                                            text.length, err);
    ort_strbuf_release(&text);
    return status;
}

static ort_status read_strings(ort_input *in, const npy_header *header, ort_value *value,
                               ort_error *err)
{
    bool wide = header->kind == 'U';
    size_t size = header->item * (wide ? 4 : 1), length;
    int64_t count = ort_tensor_count(&value->tensor);
    unsigned char *cell = malloc(size ? size : 1);
    if (!cell)
        return ort_error_memory(err, size);
    ort_status status = ORT_OK;
    for (int64_t i = 0; i < count && status == ORT_OK; i++) {
        status = ort_input_need(in, cell, size, "the strings", err);
        if (status == ORT_OK && wide) {
            if (header->big_endian)
                swap_bytes(cell, header->item, 4);
            status = add_utf32(value, i, cell, header->item, err);
        } else if (status == ORT_OK) {
            for (length = size; length > 0 && cell[length - 1] == 0;)
                length--;
            status = ort_value_set_string_(value, i, (const char *)cell, length, err);
        }
    }
    free(cell);
    return status;
}

static ort_status read_numbers(ort_input *in, const npy_header *header, ort_value *value,
                               ort_error *err)
{
    ort_tensor *t = &value->tensor;
    size_t bytes = ort_tensor_bytes(t);
    ORT_TRY(ort_input_need(in, t->data, bytes, "the array's data", err));
    size_t part = header->kind == 'c' ? header->item / 2 : header->item;
    assert(part > 0 && bytes == (size_t)ort_tensor_count(t) * header->item);
    if (header->big_endian && part > 1)
        swap_bytes(t->data, bytes / part, part);
    if (t->dtype == ORT_DTYPE_BOOL)
        for (size_t i = 0; i < bytes; i++)
            ((uint8_t *)t->data)[i] = ((uint8_t *)t->data)[i] != 0;
    return ORT_OK;
}

/* Does nothing of the array's bytes change when they are read? */
static bool lies_as_read(const npy_header *header, ort_dtype dtype)
{
    const bool turned = header->fortran && header->shape.rank > 1;
    return !header->big_endian && !turned && dtype != ORT_DTYPE_BOOL && dtype != ORT_DTYPE_STRING;
}

/* A header may claim more than there is: that is no lack of memory. */
static ort_status check_claim(const ort_input *in, const npy_header *header, ort_dtype dtype,
                              ort_error *err)
{
    uint64_t left = ort_input_left(in);
    int64_t count;
    size_t bytes;
    size_t cell = header->kind == 'U' ? header->item * 4 : header->item;
    ORT_TRY(ort_shape_check(&header->shape, dtype, err));
    count = ort_shape_count(&header->shape);
    if (cell == 0 && count > LONGEST_HEADER) /* which take room here, if none there */
        return ort_error_set(err, ORT_ERROR_DATA, "the .npy header claims %lld strings of no "
                             "bytes, %d can be read", (long long)count, LONGEST_HEADER);
    if (ort_mul_size((size_t)count, cell, &bytes) && bytes <= left)
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_DATA, "the .npy header claims %lld elements of %zu bytes, "
                         "%llu bytes are left", (long long)count, cell, (unsigned long long)left);
}

ort_status ort_npy_read_value(ort_input *in, ort_dtype wanted, ort_value **value, ort_error *err)
{
    npy_header header = {0};
    ORT_TRY(read_header(in, &header, err));
    ort_dtype dtype = dtype_of(&header, wanted);
    if (dtype == ORT_DTYPE_UNDEFINED && header.kind == 'V')
        return ort_error_set(err, ORT_ERROR_DATA, "the array holds raw elements of %zu bytes; name "
                             "their type with a dtype option", header.item);
    if (dtype == ORT_DTYPE_UNDEFINED)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "the array's element type %c%zu has no "
                             "ONNX equivalent", header.kind, header.item);
    ort_value *made = NULL;
    ORT_TRY(check_claim(in, &header, dtype, err));
    if (lies_as_read(&header, dtype))
        ORT_TRY(ort_mapped_value(in, dtype, &header.shape, value, err));
    else
        *value = NULL;
    if (*value)
        return ORT_OK;
    ORT_TRY(ort_value_new_tensor_(dtype, &header.shape, &made, err));
    ort_status status = dtype == ORT_DTYPE_STRING ? read_strings(in, &header, made, err)
                                                  : read_numbers(in, &header, made, err);
    if (status == ORT_OK && header.fortran && header.shape.rank > 1)
        status = transpose(made->tensor.data, &header.shape,
                           (size_t)ort_dtype_get(dtype)->bits / 8, err);
    return ort_value_hand(status, made, value);
}

static ort_status read_record(ort_input *in, const ort_read_options *options, ort_tensors *tensors,
                              ort_error *err)
{
    ort_value *value = NULL;
    ORT_TRY(ort_npy_read_value(in, options->dtype, &value, err));
    return ort_tensors_add_take(tensors, "", value, err);
}

/* --------------------------------------------------------------------------------- writing -- */

/* Code points of well-formed UTF-8; SIZE_MAX when it is not. `out` may be NULL. */
static size_t decode_utf8(const ort_string *s, unsigned char *out)
{
    size_t count = 0, used;
    for (size_t i = 0; i < s->length; i += used, count++) {
        uint32_t code = ort_utf8_decode(s->ptr + i, s->length - i, &used);
        if (code == 0xfffd && used == 1)
            return SIZE_MAX;
        if (out)
            ort_store_u32(out + 4 * count, code);
    }
    return count;
}

static ort_status encode_strings(const ort_tensor *t, bool utf8, ort_npy_bytes *out, char *descr,
                                 size_t descr_size, ort_error *err)
{
    const ort_string *strings = t->data;
    int64_t count = ort_tensor_count(t);
    size_t longest = 1, bytes;
    for (int64_t i = 0; i < count; i++) {
        size_t length = utf8 ? strings[i].length : decode_utf8(&strings[i], NULL);
        if (length == SIZE_MAX)
            return ort_error_set(err, ORT_ERROR_DATA, "string %lld is not UTF-8, which .npy needs; "
                                 ".npz and .pb hold any bytes", (long long)i);
        if (length > 0 && strings[i].ptr[strings[i].length - 1] == '\0')
            return ort_error_set(err, ORT_ERROR_DATA, "string %lld ends with a NUL byte, which "
                                 "numpy drops; .pb and .json keep it", (long long)i);
        longest = length > longest ? length : longest;
    }
    size_t unit = utf8 ? 1 : 4;
    if (longest > INT32_MAX / 4 || !ort_mul_size((size_t)count, longest * unit, &bytes))
        return ort_error_memory(err, SIZE_MAX);
    unsigned char *data = calloc(1, bytes ? bytes : 1);
    if (!data)
        return ort_error_memory(err, bytes);
    for (int64_t i = 0; i < count; i++) {
        unsigned char *cell = data + (size_t)i * longest * unit;
        if (!utf8)
            decode_utf8(&strings[i], cell);
        else if (strings[i].length)
            memcpy(cell, strings[i].ptr, strings[i].length);
    }
    out->owned = data;
    out->payload = data;
    out->payload_bytes = bytes;
    snprintf(descr, descr_size, "%s%zu", utf8 ? "|S" : "<U", longest);
    return ORT_OK;
}

static void add_header(ort_strbuf *header, const char *descr, const ort_shape *shape)
{
    ort_strbuf dict = {0};
    ort_strbuf_addf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < shape->rank; i++)
        ort_strbuf_addf(&dict, i ? ", %lld" : "%lld", (long long)shape->dim[i]);
    ort_strbuf_add(&dict, shape->rank == 1 ? ",), }" : "), }");
    /* Padded so that the data starts at a multiple of 64, as numpy does. */
    while ((10 + dict.length + 1) % HEADER_ALIGNMENT != 0 && !dict.failed)
        ort_strbuf_add_char(&dict, ' ');
    ort_strbuf_add_char(&dict, '\n');
    assert(dict.length <= 0xffff); /* version 1 has two bytes for it */
    ort_strbuf_add_bytes(header, "\x93NUMPY\x01\x00", 8);
    ort_strbuf_add_char(header, (char)(dict.length & 0xff));
    ort_strbuf_add_char(header, (char)(dict.length >> 8));
    ort_strbuf_add_bytes(header, ort_strbuf_text(&dict), dict.length);
    header->failed |= dict.failed;
    ort_strbuf_release(&dict);
}

ort_status ort_npy_encode(const ort_tensor *t, bool utf8, ort_npy_bytes *out, ort_error *err)
{
    const ort_dtype_row *row = ort_dtype_get(t->dtype);
    ort_shape shape = t->shape;
    char descr[32];
    memset(out, 0, sizeof *out);
    if (t->dtype == ORT_DTYPE_STRING) {
        ORT_TRY(encode_strings(t, utf8, out, descr, sizeof descr, err));
    } else {
        out->payload = t->data;
        out->payload_bytes = ort_tensor_bytes(t);
        if (row->numpy)
            snprintf(descr, sizeof descr, "%c%s", row->bits == 8 ? '|' : '<', row->numpy);
        else
            snprintf(descr, sizeof descr, "%s", row->bits == 16 ? "<u2" : "|u1");
        if (row->bits < 8)
            shape = (ort_shape){1, {(int64_t)out->payload_bytes}};
    }
    add_header(&out->header, descr, &shape);
    if (!out->header.failed)
        return ORT_OK;
    ort_npy_release(out);
    return ort_error_memory(err, 256);
}

void ort_npy_release(ort_npy_bytes *bytes)
{
    ort_strbuf_release(&bytes->header);
    free(bytes->owned);
    bytes->owned = NULL;
}

static bool has_dtype(ort_dtype dtype)
{
    return ort_dtype_get(dtype)->numpy || dtype == ORT_DTYPE_STRING;
}

static ort_status write_file(const ort_tensors *tensors, FILE *stream,
                             const ort_write_options *options, ort_error *err)
{
    const ort_tensor *t;
    ORT_TRY(ort_format_single(tensors, ".npy", &t, err));
    if (!has_dtype(t->dtype))
        return ort_format_lacks(err, ".npy", t->dtype);
    ort_npy_bytes bytes;
    ORT_TRY(ort_npy_encode(t, false, &bytes, err));
    fwrite(bytes.header.data, 1, bytes.header.length, stream);
    if (bytes.payload_bytes)
        fwrite(bytes.payload, 1, bytes.payload_bytes, stream);
    ort_npy_release(&bytes);
    return ORT_OK;
}

static bool matches(const unsigned char *bytes, size_t count)
{
    return ort_starts_with(bytes, count, "\x93NUMPY", 6);
}

const ort_format_row ort_format_row_npy = {
    .format = ORT_FORMAT_NPY,
    .name = "npy",
    .endings = "npy",
    .traits = ORT_FORMAT_TAKES_DTYPE,
    .has_dtype = has_dtype,
    .matches = matches,
    .read_record = read_record,
    .write = write_file,
};
