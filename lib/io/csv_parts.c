/* csv_parts.c - which column is what (csv_parts.h). In this order:
 *
 *     columns that the caller keeps or drops, by number or by the header's name
 *     a header that names inputs: each column goes to its input, NAME[0], NAME[1] ... to one
 *     inputs without a header: each takes as many columns as its shape says; else the first all
 *     no inputs: one tensor of numbers or of strings; where columns differ, each is one by itself
 *
 * A column that nobody takes is never left out in silence. */
#include "io/csv_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "io/purpose.h"

/* Columns that become tensors by themselves: as many as a spreadsheet can have. */
enum { MOST_SINGLE = 16384 };

/* A part of so many columns. */
static ort_status add_part(ort_csv_table *t, const char *name, ort_dtype dtype, size_t width,
                           ort_error *err)
{
    ort_csv_part part = {.name = ort_arena_strdup(&t->names, name), .dtype = dtype, .width = width};
    return part.name && ort_vec_push(&t->parts, part) ? ORT_OK
                                                      : ort_error_memory(err, sizeof part);
}

static ort_csv_part *last_part(ort_csv_table *t)
{
    assert(t->parts.count > 0);
    return &t->parts.data[t->parts.count - 1];
}

/* The same of an input of the model, as `name`. */
static ort_status add_input(ort_csv_table *t, const ort_purpose *input, const char *name,
                            size_t width, ort_error *err)
{
    ort_dtype dtype = ort_purpose_dtype(t->options, input);
    ORT_TRY(add_part(t, name, dtype ? dtype : ORT_DTYPE_FLOAT, width, err));
    last_part(t)->type = input->type;
    return ORT_OK;
}

/* ---------------------------------------------------------------------------- the first row -- */

/* Walks over the first row, whose cells were read before. */
typedef struct head {
    ort_csv_scan scan;
    size_t column; /* of `cell` */
    ort_csv_cell cell;
    bool done;
} head;

static head head_of(const ort_csv_table *t)
{
    return (head){.scan = t->start, .column = SIZE_MAX};
}

static bool head_next(head *h)
{
    if (h->done || ort_csv_next(&h->scan, &h->cell, &h->done, NULL) != ORT_OK)
        return false;
    h->cell = ort_csv_trim(&h->cell);
    h->column++;
    return true;
}

static bool is_text(const ort_csv_cell *cell)
{
    double number;
    return cell->length > 0 && !ort_csv_number(cell, &number);
}

static bool is_open(const ort_csv_table *t, size_t column)
{
    assert(!t->part_of || column < t->columns);
    return !t->part_of || t->part_of[column] == ORT_CSV_OPEN;
}

static bool next_open(head *h, const ort_csv_table *t)
{
    while (head_next(h))
        if (is_open(t, h->column))
            return true;
    return false;
}

static const char *name_of(ort_csv_table *t, const ort_csv_cell *cell, size_t column)
{
    size_t length;
    const char *text = ort_csv_text(cell, &t->scratch, &length);
    return length ? ort_arena_strndup(&t->names, text, length)
                  : ort_arena_printf(&t->names, "column%zu", column + 1);
}

const char *ort_csv_label(ort_csv_table *t, size_t column)
{
    head h = head_of(t);
    while (head_next(&h) && h.column < column)
        continue;
    const char *name = t->header && h.cell.length ? name_of(t, &h.cell, column) : NULL;
    const char *label = name ? ort_arena_printf(&t->names, "%zu '%.60s'", column + 1, name)
                             : ort_arena_printf(&t->names, "%zu", column + 1);
    return label ? label : "";
}

/* "'a', 'b', ..." of open columns, as far as `out` should grow. */
static void list_open(ort_csv_table *t, const char *quote, const char *between, ort_strbuf *out)
{
    head h = head_of(t);
    for (size_t count = 0; next_open(&h, t);) {
        if (count++ > 0)
            ort_strbuf_add(out, between);
        if (out->length > 300) {
            ort_strbuf_add(out, "...");
            return;
        }
        bool nameless = h.cell.length == 0 || memchr(h.cell.text, ',', h.cell.length);
        if (nameless && !quote[0])
            ort_strbuf_addf(out, "%zu", h.column + 1);
        else if (h.cell.length == 0)
            ort_strbuf_addf(out, "number %zu, which has no name", h.column + 1);
        else
            ort_strbuf_addf(out, "%s%.*s%s", quote, h.cell.length < 60 ? (int)h.cell.length : 60,
                            h.cell.text, quote);
    }
}

static void list_purposes(const ort_read_options *o, ort_strbuf *out)
{
    for (size_t i = 0; i < o->purpose_count; i++) {
        if (out->length > 300) {
            ort_strbuf_add(out, ", ...");
            return;
        }
        ort_strbuf_addf(out, "%s'%.60s'", i ? ", " : "", o->purposes[i].name);
    }
}

/* ------------------------------------------------------------------------- kept and dropped -- */

static ort_status open_all(ort_csv_table *t, ort_error *err)
{
    t->part_of = malloc((t->columns + 1) * sizeof *t->part_of);
    for (size_t c = 0; t->part_of && c < t->columns; c++)
        t->part_of[c] = ORT_CSV_OPEN;
    return t->part_of ? ORT_OK : ort_error_memory(err, t->columns * sizeof *t->part_of);
}

/* A number from 1 on, else a name; false: there is no such column. */
static bool find_column(ort_csv_table *t, const char *text, size_t *column)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && number >= 1 && number <= t->columns) {
        *column = (size_t)number - 1;
        return true;
    }
    for (head h = head_of(t); head_next(&h);) {
        size_t length;
        const char *name = ort_csv_text(&h.cell, &t->scratch, &length);
        if (length != strlen(text) || memcmp(name, text, length))
            continue;
        *column = h.column;
        t->header = true;
        return true;
    }
    return false;
}

static ort_status no_column(ort_csv_table *t, const char *text, ort_error *err)
{
    ort_strbuf list = {0};
    bool names = false;
    for (head h = head_of(t); head_next(&h) && !names;)
        names = is_text(&h.cell);
    if (names)
        list_open(t, "'", ", ", &list);
    ort_status status =
        names ? ort_error_set(err, ORT_ERROR_USAGE, "the table has no column '%s'; it has %s", text,
                              ort_strbuf_text(&list))
              : ort_error_set(err, ORT_ERROR_USAGE, "the table has no column '%s': it has %zu, "
                              "without names; name them by number, from 1", text, t->columns);
    ort_strbuf_release(&list);
    return status;
}

static ort_status drop_columns(ort_csv_table *t, ort_error *err)
{
    for (size_t i = 0; t->options->drop && t->options->drop[i]; i++) {
        size_t column;
        if (!find_column(t, t->options->drop[i], &column))
            return no_column(t, t->options->drop[i], err);
        t->part_of[column] = ORT_CSV_DROPPED;
    }
    return ORT_OK;
}

static ort_status keep_columns(ort_csv_table *t, ort_error *err)
{
    ORT_VEC(size_t) found = {0};
    ort_status status = ORT_OK;
    for (size_t i = 0; t->options->keep && t->options->keep[i] && status == ORT_OK; i++) {
        size_t column;
        if (!ort_vec_reserve(&found, found.count + 1))
            status = ort_error_memory(err, sizeof column);
        else if (!find_column(t, t->options->keep[i], &column))
            status = no_column(t, t->options->keep[i], err);
        else if (t->part_of[column] == ORT_CSV_DROPPED)
            status = ort_error_set(err, ORT_ERROR_USAGE, "column '%s' can't be passed through and "
                                   "dropped", t->options->keep[i]);
        else if (t->part_of[column] == ORT_CSV_OPEN) {
            t->part_of[column] = (uint32_t)found.count;
            ort_vec_push(&found, column);
        }
    }
    for (size_t i = 0; status == ORT_OK && i < found.count; i++) {
        status = add_part(t, "", ORT_DTYPE_STRING, 1, err);
        if (status != ORT_OK)
            break;
        last_part(t)->kept = true;
        last_part(t)->column = found.data[i];
    }
    ort_vec_release(&found);
    return status;
}

/* --------------------------------------------------------------------- a header with inputs -- */

typedef struct matcher {
    ort_hashmap names; /* of purposes */
    uint32_t *parts;   /* [purposes] */
} matcher;

static ort_status open_matcher(const ort_read_options *o, matcher *m, ort_error *err)
{
    *m = (matcher){.parts = malloc((o->purpose_count + 1) * sizeof *m->parts)};
    bool ok = m->parts != NULL;
    for (size_t i = 0; i < o->purpose_count && ok; i++) {
        m->parts[i] = ORT_CSV_OPEN;
        ok = !o->purposes[i].name[0] || ort_hashmap_put_str(&m->names, o->purposes[i].name, i);
    }
    return ok ? ORT_OK : ort_error_memory(err, o->purpose_count * sizeof *m->parts);
}

static void close_matcher(matcher *m)
{
    ort_hashmap_release(&m->names);
    free(m->parts);
}

/* The purpose of a column "NAME" or "NAME[index]"; index SIZE_MAX: none is written. An index too
 * large to be read is none that could be due. */
static bool match(ort_csv_table *t, const matcher *m, const ort_csv_cell *cell, uint64_t *purpose,
                  size_t *index)
{
    size_t length;
    const char *name = ort_csv_text(cell, &t->scratch, &length);
    *index = SIZE_MAX;
    if (!is_text(cell))
        return false;
    if (ort_hashmap_get(&m->names, name, length, purpose))
        return true;
    size_t at = length > 1 && name[length - 1] == ']' ? length - 1 : 0;
    size_t digits = at;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    if (at == 0 || at == digits || name[at - 1] != '[' ||
        !ort_hashmap_get(&m->names, name, at - 1, purpose))
        return false;
    *index = strtoull(name + at, NULL, 10);
    *index -= *index == SIZE_MAX;
    return true;
}

ort_status ort_csv_names_purpose(ort_csv_table *t, bool *named, ort_error *err)
{
    matcher m;
    uint64_t purpose;
    size_t index;
    *named = false;
    ort_status status = open_matcher(t->options, &m, err);
    for (head h = head_of(t); status == ORT_OK && !*named && next_open(&h, t);) {
        *named = match(t, &m, &h.cell, &purpose, &index);
        if (t->scratch.failed)
            status = ort_error_memory(err, h.cell.length);
    }
    close_matcher(&m);
    return status;
}

static ort_status take_column(ort_csv_table *t, matcher *m, const head *h, uint64_t purpose,
                              size_t index, ort_error *err)
{
    assert(purpose < t->options->purpose_count && h->column < t->columns);
    const ort_purpose *p = &t->options->purposes[purpose];
    if (m->parts[purpose] == ORT_CSV_OPEN) {
        m->parts[purpose] = (uint32_t)t->parts.count;
        ORT_TRY(add_input(t, p, p->name, 0, err));
    }
    assert(m->parts[purpose] < t->parts.count);
    ort_csv_part *part = &t->parts.data[m->parts[purpose]];
    size_t due = part->width++;
    t->part_of[h->column] = m->parts[purpose];
    if (index == SIZE_MAX && due > 0)
        return ort_error_set(err, ORT_ERROR_DATA, "column %zu: '%s' is there twice", h->column + 1,
                             p->name);
    if (index != SIZE_MAX && index != due) {
        size_t length; /* as it is written: the number may be too large for any type */
        const char *name = ort_csv_text(&h->cell, &t->scratch, &length);
        return ort_error_set(err, ORT_ERROR_DATA, "column %zu: '%.*s' stands where '%s[%zu]' is "
                             "due", h->column + 1, (int)(length < 200 ? length : 200), name,
                             p->name, due);
    }
    return ORT_OK;
}

static ort_status stray_columns(ort_csv_table *t, size_t strays, ort_error *err)
{
    ort_strbuf columns = {0}, inputs = {0}, words = {0};
    list_open(t, "'", ", ", &columns);
    list_open(t, "", ",", &words);
    list_purposes(t->options, &inputs);
    ort_status status = ort_error_set(
        err, ORT_ERROR_DATA, "column%s %s: no input of the model, which has %s; --drop %s leaves "
        "%s out, --id passes %s through to the output", strays > 1 ? "s" : "",
        ort_strbuf_text(&columns), ort_strbuf_text(&inputs), ort_strbuf_text(&words),
        strays > 1 ? "them" : "it", strays > 1 ? "one" : "it");
    ort_strbuf_release(&columns);
    ort_strbuf_release(&words);
    ort_strbuf_release(&inputs);
    return status;
}

static ort_status take_named(ort_csv_table *t, ort_error *err)
{
    matcher m;
    size_t strays = 0;
    t->header = t->named = true;
    ort_status status = open_matcher(t->options, &m, err);
    for (head h = head_of(t); status == ORT_OK && next_open(&h, t);) {
        uint64_t purpose;
        size_t index;
        if (match(t, &m, &h.cell, &purpose, &index))
            status = take_column(t, &m, &h, purpose, index, err);
        else
            strays++;
        if (status == ORT_OK && t->scratch.failed)
            status = ort_error_memory(err, h.cell.length);
    }
    close_matcher(&m);
    return status == ORT_OK && strays > 0 ? stray_columns(t, strays, err) : status;
}

/* ---------------------------------------------------------------------- inputs, by position -- */

static size_t count_open(const ort_csv_table *t)
{
    size_t open = 0;
    for (size_t c = 0; c < t->columns; c++)
        open += t->part_of[c] == ORT_CSV_OPEN;
    return open;
}

/* Columns that an input takes: its sizes behind the first, 0 where one isn't known. */
static size_t width_of(const ort_type_info *type)
{
    if (!type || type->kind != ORT_TYPE_TENSOR || type->rank < 0)
        return 0;
    int64_t width = 1;
    for (int i = 1; i < type->rank; i++)
        if (type->dims[i] < 0 || __builtin_mul_overflow(width, type->dims[i], &width))
            return 0;
    return (size_t)width;
}

/* How many inputs, from the first on, take exactly the open columns; 1 where that doesn't come out:
 * the first is to have them all, and the run says what it thinks of their number. */
static size_t count_takers(const ort_csv_table *t, size_t open)
{
    size_t taken = 0, takers = 0;
    for (; takers < t->options->purpose_count && taken < open; takers++) {
        size_t width = width_of(t->options->purposes[takers].type);
        if (width == 0)
            return 1;
        taken += width;
    }
    return taken == open && takers > 0 ? takers : 1;
}

static ort_status unnamed_inputs(ort_csv_table *t, ort_error *err)
{
    ort_strbuf columns = {0}, inputs = {0};
    list_open(t, "'", ", ", &columns);
    list_purposes(t->options, &inputs);
    ort_status status = ort_error_set(
        err, ORT_ERROR_DATA, "the header names no input of the model, which has %s; the table has "
        "%s: name its columns after the inputs", ort_strbuf_text(&inputs),
        ort_strbuf_text(&columns));
    ort_strbuf_release(&columns);
    ort_strbuf_release(&inputs);
    return status;
}

static ort_status take_by_position(ort_csv_table *t, ort_error *err)
{
    size_t open = count_open(t), takers = count_takers(t, open), first = t->parts.count;
    for (size_t i = 0; i < takers; i++) {
        const ort_purpose *p = &t->options->purposes[i];
        ORT_TRY(takers > 1 ? add_input(t, p, p->name, width_of(p->type), err)
                           : add_input(t, p, "", open, err));
    }
    size_t at = first, left = t->parts.data[first].width;
    for (head h = head_of(t); next_open(&h, t);) {
        while (left == 0 && at + 1 < t->parts.count)
            left = t->parts.data[++at].width;
        assert(left > 0); /* the takers take exactly the open columns */
        t->header |= t->parts.data[at].dtype != ORT_DTYPE_STRING && is_text(&h.cell);
        t->part_of[h.column] = (uint32_t)at;
        left--;
    }
    if (t->header && takers > 1) {
        for (size_t c = 0; c < t->columns; c++)
            t->part_of[c] = t->part_of[c] >= first && t->part_of[c] < ORT_CSV_DROPPED
                                ? ORT_CSV_OPEN : t->part_of[c];
        return unnamed_inputs(t, err);
    }
    return ORT_OK;
}

/* ------------------------------------------------------------------------- nobody's columns -- */

enum { HEAD_TEXT = 1, BODY_TEXT = 2 };

static ort_status look_at_kinds(const ort_csv_table *t, unsigned char *kinds, ort_error *err)
{
    ort_csv_scan scan = t->start;
    for (size_t row = 0; ort_csv_row(&scan); row++) {
        bool last = false;
        for (size_t c = 0; !last; c++) {
            ort_csv_cell cell;
            ORT_TRY(ort_csv_next(&scan, &cell, &last, err));
            unsigned char bit = row ? BODY_TEXT : HEAD_TEXT;
            assert(c < t->columns); /* the rows were counted, and their cells */
            if (!(kinds[c] & bit) && is_text(&cell))
                kinds[c] |= bit;
        }
    }
    return ORT_OK;
}

/* The name of a column that becomes a value by itself: no two of them have the same. */
static ort_status take_name(ort_csv_table *t, const ort_csv_cell *cell, size_t column,
                            const char **taken, ort_error *err)
{
    const char *name = name_of(t, cell, column);
    if (!name)
        return ort_error_memory(err, cell->length);
    if (!ort_json_is_text(name, strlen(name)))
        return ort_error_set(err, ORT_ERROR_DATA, "line %zu, column %zu: the name is not UTF-8; "
                             "save the table as 'CSV UTF-8'", t->start.line, column + 1);
    bool ok = true;
    for (; ok && t->indexed < t->parts.count; t->indexed++)
        ok = ort_hashmap_put_str(&t->taken, t->parts.data[t->indexed].name, t->indexed);
    if (ok && ort_hashmap_get_str(&t->taken, name, NULL))
        return ort_error_set(err, ORT_ERROR_DATA, "column %zu: '%s' is there twice; the names "
                             "of a table's columns differ", column + 1, name);
    if (!ok || !ort_hashmap_put_str(&t->taken, name, column))
        return ort_error_memory(err, sizeof(ort_hashmap_entry));
    *taken = name;
    return ORT_OK;
}

/* Columns of different kinds: each is a tensor by itself. */
static ort_status take_singly(ort_csv_table *t, const unsigned char *kinds, ort_dtype number,
                              ort_error *err)
{
    if (count_open(t) > MOST_SINGLE)
        return ort_error_set(err, ORT_ERROR_DATA, "%zu columns of numbers and of text are too many "
                             "to become tensors of their own, which %d can", count_open(t),
                             MOST_SINGLE);
    for (head h = head_of(t); next_open(&h, t);) {
        const char *name;
        ORT_TRY(take_name(t, &h.cell, h.column, &name, err));
        bool text = kinds[h.column] & BODY_TEXT;
        t->part_of[h.column] = (uint32_t)t->parts.count;
        ORT_TRY(add_part(t, name, text ? ORT_DTYPE_STRING : number, 1, err));
    }
    return ORT_OK;
}

static ort_status take_all(ort_csv_table *t, ort_dtype dtype, ort_error *err)
{
    uint32_t index = (uint32_t)t->parts.count;
    ORT_TRY(add_part(t, "", dtype, count_open(t), err));
    for (head h = head_of(t); next_open(&h, t);) {
        t->part_of[h.column] = index;
        if (t->header && last_part(t)->width == 1) /* the only one beside those */
            ORT_TRY(take_name(t, &h.cell, h.column, &last_part(t)->name, err));
    }
    return ORT_OK;
}

static ort_status take_by_kind(ort_csv_table *t, const unsigned char *kinds, ort_error *err)
{
    ort_dtype wanted = t->options->dtype;
    for (size_t c = 0; c < t->columns; c++) /* a kept column: text over numbers */
        t->header |= !is_open(t, c) && kinds[c] == HEAD_TEXT && t->rows > 1;
    bool header = t->header, mixed = false, all_text = true;
    for (size_t c = 0; c < t->columns && wanted != ORT_DTYPE_STRING; c++)
        header |= is_open(t, c) && (kinds[c] & HEAD_TEXT);
    for (size_t c = 0; c < t->columns; c++) {
        if (!is_open(t, c))
            continue;
        bool number = !(kinds[c] & BODY_TEXT) && (header || !(kinds[c] & HEAD_TEXT)) &&
                      t->rows > header;
        mixed |= !number;
        all_text &= !number;
    }
    ort_dtype number = wanted == ORT_DTYPE_UNDEFINED ? ORT_DTYPE_FLOAT : wanted;
    if (wanted == ORT_DTYPE_STRING || (all_text && wanted == ORT_DTYPE_UNDEFINED))
        return take_all(t, ORT_DTYPE_STRING, err); /* a header only where it was named */
    t->header = header;
    return mixed && header ? take_singly(t, kinds, number, err) : take_all(t, number, err);
}

static ort_status take_unasked(ort_csv_table *t, ort_error *err)
{
    unsigned char *kinds = calloc(t->columns ? t->columns : 1, 1);
    if (!kinds)
        return ort_error_memory(err, t->columns);
    ort_status status = look_at_kinds(t, kinds, err);
    if (status == ORT_OK)
        status = take_by_kind(t, kinds, err);
    free(kinds);
    return status;
}

/* What passes through is called as the header says, which is known last. */
static ort_status name_kept(ort_csv_table *t, ort_error *err)
{
    for (size_t i = 0; i < t->parts.count && t->parts.data[i].kept; i++) {
        head h = head_of(t);
        while (head_next(&h) && h.column < t->parts.data[i].column)
            continue;
        const ort_csv_cell none = {.text = ""};
        const char *name;
        ORT_TRY(take_name(t, t->header ? &h.cell : &none, h.column, &name, err));
        t->parts.data[i].name = name;
    }
    return ORT_OK;
}

ort_status ort_csv_choose(ort_csv_table *t, ort_error *err)
{
    ORT_TRY(open_all(t, err));
    ORT_TRY(drop_columns(t, err));
    ORT_TRY(keep_columns(t, err));
    bool named;
    ORT_TRY(ort_csv_names_purpose(t, &named, err));
    if (named)
        ORT_TRY(take_named(t, err));
    else if (count_open(t) == 0)
        return ort_error_set(err, ORT_ERROR_DATA, "no column is left: each is passed through or "
                             "dropped");
    else if (t->options->purpose_count)
        ORT_TRY(take_by_position(t, err));
    else
        ORT_TRY(take_unasked(t, err));
    return name_kept(t, err);
}
