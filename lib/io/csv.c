/* csv.c - reads tables (RFC 4180; comma, semicolon or tab; UTF-8, or UTF-16 with its mark).
 *
 * Twice over the text: once to count its rows, then, when it is known what becomes of each column
 * (csv_parts.h), to fill the tensors. The element types are those of the inputs, where the caller
 * says what they are; else numbers are float and the rest is strings. Empty cells are NaN, or "".
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/csv_parts.h"
#include "io/purpose.h"
#include "tensor/text.h"

static ort_status count_rows(ort_csv_table *t, ort_error *err)
{
    ort_csv_scan scan = t->start;
    while (ort_csv_row(&scan)) {
        size_t columns = 0, line = scan.line;
        for (bool last = false; !last; columns++) {
            ort_csv_cell cell;
            ORT_TRY(ort_csv_next(&scan, &cell, &last, err));
        }
        if (t->rows++ == 0)
            t->columns = columns;
        if (columns != t->columns)
            return ort_error_set(err, ORT_ERROR_DATA, "line %zu has %zu cell%s, the first one has "
                                 "%zu", line, columns, columns == 1 ? "" : "s", t->columns);
    }
    if (t->columns >= ORT_CSV_DROPPED)
        return ort_error_set(err, ORT_ERROR_DATA, "%zu columns are too many", t->columns);
    return t->rows ? ORT_OK : ort_error_set(err, ORT_ERROR_DATA, "is empty");
}

/* ----------------------------------------------------------------------------------- shapes -- */

/* Rows of `width` elements as the input has them behind its first dimension; one of those sizes may
 * be open. */
static bool fit_rows(const ort_type_info *type, int64_t rows, int64_t width, ort_shape *shape)
{
    int64_t known = 1;
    int open = 0;
    *shape = (ort_shape){.rank = type->rank, .dim = {rows}};
    for (int i = 1; i < type->rank; i++) {
        shape->dim[i] = type->dims[i];
        if (type->dims[i] < 0 && open)
            return false;
        if (type->dims[i] < 0)
            open = i;
        else if (__builtin_mul_overflow(known, type->dims[i], &known))
            return false;
    }
    if (open && known > 0 && width % known == 0) {
        shape->dim[open] = width / known;
        return true;
    }
    return !open && known == width;
}

static ort_shape shape_of(const ort_csv_part *part, int64_t rows)
{
    int64_t width = (int64_t)part->width;
    const ort_type_info *type = part->type;
    ort_shape shape = {2, {rows, width}}, fitted;
    if (part->kept)
        return (ort_shape){1, {rows}};
    if (!type || type->kind != ORT_TYPE_TENSOR || type->rank < 0 || type->rank > ORT_MAX_RANK)
        return shape;
    if (type->rank == 0)
        return rows * width == 1 ? (ort_shape){0, {0}} : shape;
    if (type->rank == 1 && (width == 1 || rows == 1))
        return (ort_shape){1, {rows * width}};
    return type->rank > 1 && fit_rows(type, rows, width, &fitted) ? fitted : shape;
}

/* --------------------------------------------------------------------------------- elements -- */

static const char *remedy(const ort_csv_table *t, const ort_csv_cell *cell)
{
    if (t->start.separator != ',' && memchr(cell->text, ',', cell->length))
        return "; decimal commas aren't read, points are: tr , . turns them";
    return t->named || !t->header ? ""
           : "; --drop leaves a column out, --id passes it through to the output";
}

static ort_status bad_cell(ort_csv_table *t, const ort_csv_cell *cell, ort_dtype dtype, size_t line,
                           size_t column, ort_error *err)
{
    if (ort_csv_trim(cell).length == 0)
        return ort_error_set(err, ORT_ERROR_DATA, "line %zu, column %s: is empty, needs %s (of "
                             "numbers only floats can be missing)", line,
                             ort_csv_label(t, column), ort_dtype_name(dtype));
    return ort_error_set(err, ORT_ERROR_DATA, "line %zu, column %s: '%.*s' is no %s%s", line,
                         ort_csv_label(t, column), cell->length < 60 ? (int)cell->length : 60,
                         cell->text, ort_dtype_name(dtype), remedy(t, cell));
}

static bool set_bool(ort_tensor *t, int64_t index, const ort_csv_cell *cell)
{
    bool yes = cell->length == 4 && !strncasecmp(cell->text, "true", 4);
    bool no = cell->length == 5 && !strncasecmp(cell->text, "false", 5);
    double number = yes;
    if (!yes && !no && (!ort_csv_number(cell, &number) || (number != 0 && number != 1)))
        return false;
    ort_tensor_set_i64(t, index, number != 0);
    return true;
}

static bool set_float(ort_tensor *t, int64_t index, const ort_csv_cell *cell)
{
    double number;
    if (!ort_csv_number(cell, &number))
        return false;
    if (t->dtype == ORT_DTYPE_FLOAT)
        ((float *)t->data)[index] = (float)number;
    else if (t->dtype == ORT_DTYPE_DOUBLE || isnan(number))
        ort_tensor_set_f64(t, index, number);
    else
        return ort_text_parse_element(t, index, cell->text, cell->length, NULL);
    return true;
}

static bool set_element(ort_tensor *t, int64_t index, const ort_csv_cell *cell)
{
    switch (ort_dtype_get(t->dtype)->class_) {
    case ORT_CLASS_INT:
    case ORT_CLASS_UINT: return ort_text_parse_integer(t, index, cell->text, cell->length);
    case ORT_CLASS_BOOL: return set_bool(t, index, cell);
    case ORT_CLASS_FLOAT: return set_float(t, index, cell);
    case ORT_CLASS_COMPLEX:
        return ort_text_parse_element(t, index, cell->text, cell->length, NULL);
    default: return false;
    }
}

static ort_status fill_cell(ort_csv_table *t, ort_csv_part *part, const ort_csv_cell *cell,
                            size_t line, size_t column, ort_error *err)
{
    int64_t index = part->next++;
    assert(index < ort_tensor_count(&part->value->tensor));
    if (part->dtype != ORT_DTYPE_STRING) {
        const ort_csv_cell trimmed = ort_csv_trim(cell);
        return set_element(&part->value->tensor, index, &trimmed)
                   ? ORT_OK
                   : bad_cell(t, cell, part->dtype, line, column, err);
    }
    size_t length;
    const char *text = ort_csv_text(cell, &t->scratch, &length);
    if (t->scratch.failed)
        return ort_error_memory(err, cell->length);
    if (!ort_json_is_text(text, length))
        return ort_error_set(err, ORT_ERROR_DATA, "line %zu, column %s: is not UTF-8; save the "
                             "table as 'CSV UTF-8'", line, ort_csv_label(t, column));
    return ort_value_set_string_(part->value, index, text, length, err);
}

static ort_status fill(ort_csv_table *t, ort_error *err)
{
    ort_csv_scan scan = t->start;
    for (size_t row = 0; ort_csv_row(&scan); row++) {
        bool last = false;
        for (size_t c = 0; !last; c++) {
            ort_csv_cell cell;
            size_t line = scan.line;
            ORT_TRY(ort_csv_next(&scan, &cell, &last, err));
            assert(c < t->columns);
            uint32_t part = t->part_of[c];
            if (part < t->parts.count && row >= t->header)
                ORT_TRY(fill_cell(t, &t->parts.data[part], &cell, line, c, err));
        }
    }
    return ORT_OK;
}

static ort_status make_parts(ort_csv_table *t, ort_error *err)
{
    for (size_t i = 0; i < t->parts.count; i++) {
        ort_csv_part *part = &t->parts.data[i];
        const ort_shape shape = shape_of(part, (int64_t)(t->rows - t->header));
        assert(ort_shape_count(&shape) == (int64_t)((t->rows - t->header) * part->width));
        ORT_TRY(ort_value_new_tensor_(part->dtype, &shape, &part->value, err));
    }
    return ORT_OK;
}

static ort_status give_parts(ort_csv_table *t, ort_tensors *tensors, ort_error *err)
{
    for (size_t i = 0; i < t->parts.count; i++) {
        ort_csv_part *part = &t->parts.data[i];
        ort_value *value = part->value;
        assert(part->next == ort_tensor_count(&value->tensor));
        part->value = NULL;
        ORT_TRY(part->kept ? ort_tensors_add_column_take(tensors, part->name, value, err)
                           : ort_tensors_add_take(tensors, part->name, value, err));
    }
    return ORT_OK;
}

static void release(ort_csv_table *t)
{
    for (size_t i = 0; i < t->parts.count; i++)
        ort_value_free(t->parts.data[i].value);
    ort_vec_release(&t->parts);
    free(t->part_of);
    ort_hashmap_release(&t->taken);
    ort_arena_release(&t->names);
    ort_strbuf_release(&t->scratch);
}

static ort_status read_table(ort_csv_table *t, const char *text, size_t length,
                             ort_tensors *tensors, ort_error *err)
{
    ORT_TRY(ort_csv_scan_init(&t->start, text, length, err));
    ORT_TRY(count_rows(t, err));
    ORT_TRY(ort_csv_choose(t, err));
    if (t->rows == t->header)
        return ort_error_set(err, ORT_ERROR_DATA, "holds a header and no row below it");
    ORT_TRY(make_parts(t, err));
    ORT_TRY(fill(t, err));
    return give_parts(t, tensors, err);
}

static ort_status read_file(const unsigned char *bytes, size_t count,
                            const ort_read_options *options, ort_tensors *tensors, ort_error *err)
{
    char *text = NULL;
    size_t length = count;
    ORT_TRY(ort_csv_decode(bytes, count, &text, &length, err));
    ort_csv_table t = {.options = options};
    ort_status status = read_table(&t, text ? text : (const char *)bytes, length, tensors, err);
    release(&t);
    free(text);
    return status;
}

/* Text without a name is a table where its first row names a purpose. */
static ort_status claims(const ort_format_guess *guess, bool *mine, ort_error *err)
{
    enum { LONGEST_HEADER = 1 << 20 };
    char *text = NULL;
    size_t length = guess->count < LONGEST_HEADER ? guess->count : LONGEST_HEADER;
    *mine = false;
    if (!guess->options->purpose_count)
        return ORT_OK;
    ort_csv_table t = {.options = guess->options};
    ort_status status = ort_csv_decode(guess->bytes, length & ~(size_t)1, &text, &length, NULL);
    if (status == ORT_OK)
        status = ort_csv_scan_init(&t.start, text ? text : (const char *)guess->bytes, length,
                                   NULL);
    if (status == ORT_OK && ort_csv_row(&t.start))
        status = ort_csv_names_purpose(&t, mine, NULL);
    release(&t);
    free(text);
    /* What is no text, or none of rows, is no table. */
    return status == ORT_ERROR_MEMORY ? ort_error_memory(err, length) : ORT_OK;
}

static ort_status settle(const char *ending, ort_write_options *options, ort_error *err)
{
    if (options->separator == 0 && !strcasecmp(ending, "tsv"))
        options->separator = '\t';
    return ORT_OK;
}

const ort_format_row ort_format_row_csv = {
    .format = ORT_FORMAT_CSV,
    .name = "csv",
    .endings = "csv tsv",
    .words = "csv tsv",
    .traits = ORT_FORMAT_COLUMNS | ORT_FORMAT_ROWS | ORT_FORMAT_TAKES_DTYPE,
    .claims = claims,
    .read = read_file,
    .settle = settle,
    .write = ort_csv_write,
};
