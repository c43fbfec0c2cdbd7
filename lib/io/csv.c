/* csv.c - tables (RFC 4180; comma, semicolon or tab).
 *
 * A table of numbers becomes one tensor, rows x columns; a first row that is not numbers is its
 * header and is left out. When columns differ in kind, each becomes a tensor rows x 1 of its own,
 * named by the header: the form in which tabular models take them. Empty cells are NaN. Written are
 * one tensor as rows (inner dimensions flattened), or several side by side under a header. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "io/format.h"
#include "tensor/text.h"

typedef struct cell {
    const char *text; /* in the arena, NUL-terminated */
    size_t length;
} cell;

typedef struct table {
    ort_arena arena;
    ORT_VEC(cell) cells; /* row-major, `columns` per row */
    size_t columns;
    size_t rows;
} table;

static char find_separator(const char *p, const char *end)
{
    size_t commas = 0, semicolons = 0, tabs = 0;
    for (bool quoted = false; p < end && (quoted || *p != '\n'); p++) {
        if (*p == '"')
            quoted = !quoted;
        commas += !quoted && *p == ',';
        semicolons += !quoted && *p == ';';
        tabs += !quoted && *p == '\t';
    }
    return tabs > commas && tabs > semicolons ? '\t' : semicolons > commas ? ';' : ',';
}

/* One cell from *at on; *at stands on the separator, the line end or the end afterwards. */
static bool read_cell(table *t, const char **at, const char *end, char separator)
{
    const char *p = *at;
    ort_strbuf text = {0};
    while (p < end && *p == ' ')
        p++;
    if (p < end && *p == '"') {
        for (p++; p < end; p++) {
            if (*p == '"' && (p + 1 == end || p[1] != '"'))
                break;
            if (*p == '"')
                p++;
            ort_strbuf_add_char(&text, *p);
        }
        while (p < end && *p != separator && *p != '\n')
            p++;
    } else {
        const char *start = p;
        while (p < end && *p != separator && *p != '\n')
            p++;
        const char *last = p;
        while (last > start && (last[-1] == '\r' || last[-1] == ' '))
            last--;
        ort_strbuf_add_bytes(&text, start, (size_t)(last - start));
    }
    *at = p;
    cell one = {text.failed ? NULL : ort_arena_strndup(&t->arena, ort_strbuf_text(&text),
                                                       text.length), text.length};
    ort_strbuf_release(&text);
    return one.text && ort_vec_push(&t->cells, one);
}

static ort_status parse(const char *bytes, size_t count, table *t, ort_error *err)
{
    const char *at = bytes, *end = bytes + count;
    if (count >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    char separator = find_separator(at, end);
    for (size_t line = 1; at < end; line++) {
        if (*at == '\n' || (*at == '\r' && at + 1 < end && at[1] == '\n')) {
            at += *at == '\r' ? 2 : 1;
            continue;
        }
        size_t first = t->cells.count;
        for (;;) {
            if (!read_cell(t, &at, end, separator))
                return ort_error_memory(err, count);
            if (at >= end || *at == '\n')
                break;
            at++;
        }
        at += at < end;
        size_t columns = t->cells.count - first;
        if (t->rows == 0)
            t->columns = columns;
        if (columns != t->columns)
            return ort_error_set(err, ORT_ERROR_DATA, "line %zu has %zu cells, the first one has "
                                 "%zu", line, columns, t->columns);
        t->rows++;
    }
    return ORT_OK;
}

static const cell *cell_at(const table *t, size_t row, size_t column)
{
    return &t->cells.data[row * t->columns + column];
}

static bool is_number(const cell *c)
{
    char *end;
    if (c->length == 0)
        return true;
    ort_parse_double(c->text, &end);
    return end != c->text && *end == '\0';
}

static bool is_numeric_column(const table *t, size_t first_row, size_t column)
{
    for (size_t row = first_row; row < t->rows; row++)
        if (!is_number(cell_at(t, row, column)))
            return false;
    return true;
}

static ort_status fill_cell(ort_value *value, int64_t index, const cell *c, size_t row,
                            size_t column, ort_error *err)
{
    ort_tensor *t = &value->tensor;
    if (t->dtype == ORT_DTYPE_STRING)
        return ort_value_set_string_(value, index, c->text, c->length, err);
    if (c->length == 0 && ort_dtype_get(t->dtype)->class_ == ORT_CLASS_FLOAT) {
        ort_tensor_set_f64(t, index, NAN);
        return ORT_OK;
    }
    if (ort_text_parse_element(t, index, c->text, c->length, NULL))
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_DATA, "row %zu, column %zu: '%.60s' is no %s", row + 1,
                         column + 1, c->text, ort_dtype_name(t->dtype));
}

/* Columns [first, last) of the rows below the header. */
static ort_status add_columns(const table *t, size_t first_row, size_t first, size_t last,
                              ort_dtype dtype, const char *name, ort_tensors *tensors,
                              ort_error *err)
{
    int64_t dims[2] = {(int64_t)(t->rows - first_row), (int64_t)(last - first)}, index = 0;
    ort_value *value = NULL;
    ORT_TRY(ort_value_new_tensor(dtype, 2, dims, &value, err));
    ort_status status = ORT_OK;
    for (size_t row = first_row; row < t->rows && status == ORT_OK; row++)
        for (size_t column = first; column < last && status == ORT_OK; column++)
            status = fill_cell(value, index++, cell_at(t, row, column), row, column, err);
    if (status != ORT_OK) {
        ort_value_free(value);
        return status;
    }
    return ort_tensors_add_take(tensors, name, value, err);
}

static ort_status add_table(const table *t, ort_dtype dtype, ort_tensors *tensors, ort_error *err)
{
    bool header = false, mixed = false, all_text = true;
    for (size_t c = 0; c < t->columns; c++)
        header |= t->rows > 0 && cell_at(t, 0, c)->length > 0 && !is_number(cell_at(t, 0, c));
    for (size_t c = 0; c < t->columns; c++) {
        bool numeric = is_numeric_column(t, header, c) && t->rows > header;
        mixed |= !numeric;
        all_text &= !numeric;
    }
    ort_dtype number = dtype == ORT_DTYPE_UNDEFINED ? ORT_DTYPE_FLOAT : dtype;
    if (dtype == ORT_DTYPE_STRING || (all_text && dtype == ORT_DTYPE_UNDEFINED))
        return add_columns(t, 0, 0, t->columns, ORT_DTYPE_STRING, "", tensors, err);
    if (!mixed || !header)
        return add_columns(t, header, 0, t->columns, number, "", tensors, err);
    for (size_t c = 0; c < t->columns; c++) {
        bool numeric = is_numeric_column(t, 1, c);
        ORT_TRY(add_columns(t, 1, c, c + 1, numeric ? number : ORT_DTYPE_STRING,
                            cell_at(t, 0, c)->text, tensors, err));
    }
    return ORT_OK;
}

ort_status ort_csv_read(const unsigned char *bytes, size_t count, const ort_read_options *options,
                        ort_tensors *tensors, ort_error *err)
{
    table t = {0};
    ort_status status = parse((const char *)bytes, count, &t, err);
    if (status == ORT_OK)
        status = add_table(&t, options->dtype, tensors, err);
    ort_vec_release(&t.cells);
    ort_arena_release(&t.arena);
    return status;
}

/* --------------------------------------------------------------------------------- writing -- */

static void add_quoted(ort_strbuf *out, const char *text, size_t length)
{
    bool plain = true;
    for (size_t i = 0; i < length; i++)
        plain &= text[i] != ',' && text[i] != '"' && text[i] != '\n' && text[i] != '\r';
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

static void add_cell(ort_strbuf *out, const ort_tensor *t, int64_t index)
{
    ort_dtype_class class_ = ort_dtype_get(t->dtype)->class_;
    if (class_ == ORT_CLASS_STRING) {
        const ort_string *s = (const ort_string *)t->data + index;
        add_quoted(out, s->ptr, s->length);
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

static int64_t row_count(const ort_tensor *t)
{
    return t->shape.rank ? t->shape.dim[0] : 1;
}

static int64_t row_width(const ort_tensor *t)
{
    return ort_shape_count_range(&t->shape, 1, t->shape.rank < 1 ? 1 : t->shape.rank);
}

static ort_status check_writable(const ort_tensors *tensors, ort_error *err)
{
    for (size_t i = 0; i < tensors->list.count; i++) {
        const ort_value *value = tensors->list.data[i].value;
        if (!value || value->kind != ORT_KIND_TENSOR)
            return ort_error_set(err, ORT_ERROR_DATA, ".csv holds tensors only; .json, .npz and "
                                 ".pb hold sequences and maps");
        if (row_count(&value->tensor) != row_count(&tensors->list.data[0].value->tensor))
            return ort_error_set(err, ORT_ERROR_DATA, ".csv needs the same number of rows in all "
                                 "tensors; '%s' has %lld, '%s' has %lld",
                                 tensors->list.data[0].name,
                                 (long long)row_count(&tensors->list.data[0].value->tensor),
                                 tensors->list.data[i].name,
                                 (long long)row_count(&value->tensor));
    }
    return ORT_OK;
}

/* The source of a row: its own, or the only one. */
static const char *source_of(const ort_tensors *tensors, int64_t row, int64_t rows)
{
    size_t count = tensors->sources.count;
    return count == 1                 ? tensors->sources.data[0]
           : (int64_t)count == rows   ? tensors->sources.data[row]
                                      : "";
}

static void add_header(ort_strbuf *out, const ort_tensors *tensors, bool sources)
{
    ort_strbuf name = {0};
    if (sources)
        ort_strbuf_add(out, "file");
    for (size_t i = 0; i < tensors->list.count; i++) {
        int64_t width = row_width(&tensors->list.data[i].value->tensor);
        for (int64_t c = 0; c < width; c++) {
            ort_strbuf_clear(&name);
            ort_strbuf_add(&name, tensors->list.data[i].name);
            if (width > 1)
                ort_strbuf_addf(&name, "[%lld]", (long long)c);
            if (out->length)
                ort_strbuf_add_char(out, ',');
            add_quoted(out, ort_strbuf_text(&name), name.length);
        }
    }
    ort_strbuf_add_char(out, '\n');
    ort_strbuf_release(&name);
}

ort_status ort_csv_write(const ort_tensors *tensors, FILE *stream, const ort_write_options *options,
                         ort_error *err)
{
    ORT_TRY(check_writable(tensors, err));
    ort_strbuf line = {0};
    int64_t rows = tensors->list.count ? row_count(&tensors->list.data[0].value->tensor) : 0;
    bool sources = options && options->sources;
    if (tensors->list.count > 1 || sources) {
        add_header(&line, tensors, sources);
        fwrite(line.data, 1, line.length, stream);
    }
    for (int64_t row = 0; row < rows && !line.failed; row++) {
        ort_strbuf_clear(&line);
        if (sources) {
            const char *source = source_of(tensors, row, rows);
            add_quoted(&line, source, strlen(source));
        }
        for (size_t i = 0; i < tensors->list.count; i++) {
            const ort_tensor *t = &tensors->list.data[i].value->tensor;
            int64_t width = row_width(t);
            for (int64_t c = 0; c < width; c++) {
                if (line.length)
                    ort_strbuf_add_char(&line, ',');
                add_cell(&line, t, row * width + c);
            }
        }
        ort_strbuf_add_char(&line, '\n');
        fwrite(ort_strbuf_text(&line), 1, line.length, stream);
    }
    ort_status status = line.failed ? ort_error_memory(err, line.length) : ORT_OK;
    ort_strbuf_release(&line);
    return status;
}
