/* csv_write.c - writes tables (RFC 4180, UTF-8): the columns that go with the rows, then
 * values side by side, a column per element of a row or per key of its map.
 *
 * A tensor gives its first dimension as rows, the inner ones flattened; a sequence of maps, as
 * ZipMap makes them, a row per map and a column per key. One tensor alone has no header. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "io/csv_parts.h"
#include "tensor/text.h"

/* A value as columns. */
typedef struct block {
    const char *name;
    const ort_value *value;
    int64_t rows, width;
    ort_hashmap keys; /* of maps: text of the key to its column */
    bool maps;
} block;

typedef struct sheet {
    ORT_VEC(block) blocks;
    int64_t rows;
    ort_arena texts; /* of keys */
    ort_strbuf line, scratch;
    const ort_tensors *tensors;
    bool sources;
    char separator;
} sheet;

static void release(sheet *s)
{
    for (size_t i = 0; i < s->blocks.count; i++)
        ort_hashmap_release(&s->blocks.data[i].keys);
    ort_vec_release(&s->blocks);
    ort_arena_release(&s->texts);
    ort_strbuf_release(&s->line);
    ort_strbuf_release(&s->scratch);
}

/* ------------------------------------------------------------------------------------ cells -- */

static void add_quoted(ort_strbuf *out, char separator, const char *text, size_t length)
{
    bool plain = true;
    for (size_t i = 0; i < length; i++)
        plain &= text[i] != separator && text[i] != '"' && text[i] != '\n' && text[i] != '\r';
    if (plain && length > 0) {
        ort_strbuf_add_bytes(out, text, length);
        return;
    }
    ort_strbuf_add_char(out, '"');
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            ort_strbuf_add_char(out, '"');
        ort_strbuf_add_char(out, text[i]);
    }
    ort_strbuf_add_char(out, '"');
}

static void add_cell(ort_strbuf *out, char separator, const ort_tensor *t, int64_t index)
{
    ort_dtype_class class_ = ort_dtype_get(t->dtype)->class_;
    if (class_ == ORT_CLASS_STRING) {
        const ort_string *s = (const ort_string *)t->data + index;
        add_quoted(out, separator, s->ptr, s->length);
    } else if (class_ == ORT_CLASS_FLOAT && t->dtype != ORT_DTYPE_DOUBLE) {
        ort_strbuf_add_float(out, (float)ort_tensor_get_f64(t, index));
    } else if (class_ == ORT_CLASS_FLOAT) {
        ort_strbuf_add_double(out, ort_tensor_get_f64(t, index));
    } else if (class_ == ORT_CLASS_BOOL) {
        ort_strbuf_add(out, ort_tensor_get_i64(t, index) ? "1" : "0");
    } else {
        ort_text_add_element(out, t, index);
    }
}

/* ------------------------------------------------------------------------ values as columns -- */

static const ort_value *map_of(const block *b, int64_t row)
{
    assert(row >= 0 && row < b->rows);
    return b->value->kind == ORT_KIND_MAP ? b->value : b->value->items[row];
}

/* Text of a key; NULL without memory. It lives until the next call. */
static const char *key_text(sheet *s, const ort_tensor *keys, int64_t index)
{
    ort_strbuf_clear(&s->scratch);
    ort_text_add_element(&s->scratch, keys, index);
    return s->scratch.failed ? NULL : ort_strbuf_text(&s->scratch);
}

static ort_status add_keys(sheet *s, block *b, const ort_value *map, ort_error *err)
{
    const ort_tensor *keys = &map->items[0]->tensor;
    int64_t count = ort_tensor_count(keys);
    for (int64_t i = 0; i < count; i++) {
        const char *text = key_text(s, keys, i);
        if (text && ort_hashmap_get(&b->keys, text, s->scratch.length, NULL))
            continue;
        const char *copy = text ? ort_arena_strndup(&s->texts, text, s->scratch.length) : NULL;
        if (!copy || !ort_hashmap_put(&b->keys, copy, s->scratch.length, b->keys.count))
            return ort_error_memory(err, s->scratch.length);
    }
    return ORT_OK;
}

static bool is_plain_map(const ort_value *value)
{
    return value && value->kind == ORT_KIND_MAP && value->items[1]->kind == ORT_KIND_TENSOR &&
           ort_tensor_count(&value->items[0]->tensor) == ort_tensor_count(&value->items[1]->tensor);
}

/* For messages. */
static const char *label(const block *b)
{
    return b->name[0] ? b->name : "(unnamed)";
}

static ort_status check_text(const block *b, const ort_tensor *t, ort_error *err)
{
    const ort_string *text = t->data;
    int64_t count = t->dtype == ORT_DTYPE_STRING ? ort_tensor_count(t) : 0;
    for (int64_t i = 0; i < count; i++)
        if (!ort_json_is_text(text[i].ptr ? text[i].ptr : "", text[i].length) ||
            (text[i].length && memchr(text[i].ptr, '\0', text[i].length)))
            return ort_error_set(err, ORT_ERROR_DATA, "'%s': string %lld is not UTF-8 text, which "
                                 ".csv needs; .pb holds any bytes", label(b), (long long)i);
    return ORT_OK;
}

static ort_status open_maps(sheet *s, block *b, ort_error *err)
{
    bool single = b->value->kind == ORT_KIND_MAP;
    b->maps = true;
    b->rows = single ? 1 : (int64_t)b->value->count;
    for (int64_t row = 0; row < b->rows; row++) {
        const ort_value *map = map_of(b, row);
        if (!is_plain_map(map))
            return ort_error_set(err, ORT_ERROR_DATA, "'%s': .csv holds tensors, and maps with one "
                                 "value per key; .json, .npz and .pb hold others", label(b));
        ORT_TRY(check_text(b, &map->items[0]->tensor, err));
        ORT_TRY(check_text(b, &map->items[1]->tensor, err));
        ORT_TRY(add_keys(s, b, map, err));
    }
    b->width = (int64_t)b->keys.count;
    return ORT_OK;
}

static ort_status add_block(sheet *s, const ort_tensors_entry *entry, ort_error *err)
{
    block b = {.name = entry->name, .value = entry->value};
    if (!ort_vec_push(&s->blocks, b))
        return ort_error_memory(err, sizeof b);
    block *own = &s->blocks.data[s->blocks.count - 1];
    if (ort_value_get_kind(entry->value) == ORT_VALUE_NONE)
        return ort_error_set(err, ORT_ERROR_DATA, "'%s' is absent, which .csv can't say; .json, "
                             ".npz and .pb can", label(&b));
    if (entry->value->kind != ORT_KIND_TENSOR) {
        ORT_TRY(open_maps(s, own, err));
    } else {
        const ort_shape *shape = &entry->value->tensor.shape;
        own->rows = shape->rank ? shape->dim[0] : 1;
        own->width = ort_shape_count_range(shape, 1, shape->rank < 1 ? 1 : shape->rank);
        ORT_TRY(check_text(own, &entry->value->tensor, err));
    }
    const block *first = &s->blocks.data[0];
    s->rows = first->rows;
    if (own->rows != first->rows)
        return ort_error_set(err, ORT_ERROR_DATA, ".csv needs the same number of rows in all "
                             "values; '%s' has %lld, '%s' has %lld", label(first),
                             (long long)first->rows, label(own), (long long)own->rows);
    return ORT_OK;
}

/* A shape of no elements may have any number of rows: without a column they are nothing. */
static ort_status check_columns(const sheet *s, ort_error *err)
{
    char shape[160];
    for (size_t i = 0; i < s->blocks.count; i++)
        if (s->blocks.data[i].width > 0 || s->rows == 0)
            return ORT_OK;
    const ort_value *first = s->blocks.count ? s->blocks.data[0].value : NULL;
    return first && first->kind == ORT_KIND_TENSOR
               ? ort_error_set(err, ORT_ERROR_DATA, "'%s' is %s: its rows have no columns, which "
                               ".csv can't say; .npy, .npz and .pb can", label(&s->blocks.data[0]),
                               ort_shape_format(&first->tensor.shape, shape, sizeof shape))
               : ORT_OK;
}

/* ------------------------------------------------------------------------------------ lines -- */

/* The source of a row: its own, or the only one. */
static const char *source_of(const ort_tensors *tensors, int64_t row, int64_t rows)
{
    size_t count = tensors->sources.count;
    return count == 1                 ? tensors->sources.data[0]
           : (int64_t)count == rows   ? tensors->sources.data[row]
                                      : "";
}

static void add_separator(sheet *s, size_t column)
{
    if (column > 0)
        ort_strbuf_add_char(&s->line, s->separator);
}

static void add_header(sheet *s)
{
    size_t column = 0;
    if (s->sources) {
        ort_strbuf_add(&s->line, "file");
        column++;
    }
    for (size_t i = 0; i < s->blocks.count; i++) {
        const block *b = &s->blocks.data[i];
        for (int64_t c = 0; c < b->width; c++) {
            ort_strbuf_clear(&s->scratch);
            if (b->name[0])
                ort_strbuf_add(&s->scratch, b->name);
            else
                ort_strbuf_addf(&s->scratch, "arr_%zu", i - s->tensors->columns.count);
            if (b->maps) {
                const ort_hashmap_entry *key = &b->keys.entries[c];
                ort_strbuf_add_char(&s->scratch, '.');
                ort_strbuf_add_bytes(&s->scratch, key->key, key->key_length);
            } else if (b->width > 1) {
                ort_strbuf_addf(&s->scratch, "[%lld]", (long long)c);
            }
            add_separator(s, column++);
            add_quoted(&s->line, s->separator, ort_strbuf_text(&s->scratch),
                       s->scratch.length);
        }
    }
    ort_strbuf_add_char(&s->line, '\n');
}

/* A key that the map of this row lacks is an empty cell. */
static ort_status add_map(sheet *s, const block *b, int64_t row, size_t column, ort_error *err)
{
    const ort_value *map = map_of(b, row);
    const ort_tensor *keys = &map->items[0]->tensor, *values = &map->items[1]->tensor;
    int64_t *at = malloc((size_t)(b->width + 1) * sizeof *at), count = ort_tensor_count(keys);
    if (!at)
        return ort_error_memory(err, (size_t)b->width * sizeof *at);
    for (int64_t c = 0; c < b->width; c++)
        at[c] = -1;
    for (int64_t i = 0; i < count; i++) {
        uint64_t place;
        const char *text = key_text(s, keys, i);
        if (text && ort_hashmap_get(&b->keys, text, s->scratch.length, &place)) {
            assert(place < (uint64_t)b->width);
            at[place] = i;
        }
    }
    for (int64_t c = 0; c < b->width; c++) {
        add_separator(s, column++);
        if (at[c] >= 0)
            add_cell(&s->line, s->separator, values, at[c]);
    }
    free(at);
    return s->scratch.failed ? ort_error_memory(err, s->scratch.length) : ORT_OK;
}

static ort_status add_row(sheet *s, int64_t row, ort_error *err)
{
    size_t column = 0;
    if (s->sources) {
        const char *source = source_of(s->tensors, row, s->rows);
        add_quoted(&s->line, s->separator, source, strlen(source));
        column++;
    }
    for (size_t i = 0; i < s->blocks.count; i++) {
        const block *b = &s->blocks.data[i];
        if (b->maps)
            ORT_TRY(add_map(s, b, row, column, err));
        for (int64_t c = 0; !b->maps && c < b->width; c++) {
            add_separator(s, column + (size_t)c);
            add_cell(&s->line, s->separator, &b->value->tensor, row * b->width + c);
        }
        column += (size_t)b->width;
    }
    ort_strbuf_add_char(&s->line, '\n');
    return ORT_OK;
}

static ort_status write_lines(sheet *s, bool header, FILE *stream, ort_error *err)
{
    if (header) {
        add_header(s);
        fwrite(ort_strbuf_text(&s->line), 1, s->line.length, stream);
    }
    for (int64_t row = 0; row < s->rows && !s->line.failed && !ferror(stream); row++) {
        ort_strbuf_clear(&s->line);
        ORT_TRY(add_row(s, row, err));
        fwrite(ort_strbuf_text(&s->line), 1, s->line.length, stream);
    }
    return s->line.failed || s->scratch.failed ? ort_error_memory(err, s->line.length) : ORT_OK;
}

ort_status ort_csv_write(const ort_tensors *tensors, FILE *stream, const ort_write_options *options,
                         ort_error *err)
{
    sheet s = {.tensors = tensors, .sources = options && options->sources,
               .separator = options && options->separator ? options->separator : ','};
    ort_status status = ORT_OK;
    for (size_t i = 0; i < tensors->columns.count && status == ORT_OK; i++)
        status = add_block(&s, &tensors->columns.data[i], err);
    for (size_t i = 0; i < tensors->list.count && status == ORT_OK; i++)
        status = add_block(&s, &tensors->list.data[i], err);
    if (status == ORT_OK)
        status = check_columns(&s, err);
    bool header = s.blocks.count > 1 || s.sources || (s.blocks.count && s.blocks.data[0].maps);
    if (status == ORT_OK)
        status = write_lines(&s, header && !(options && options->goes_on), stream, err);
    release(&s);
    return status;
}
