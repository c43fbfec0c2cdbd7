/* dim_parse.c - dimensions as exporters write them: "batch", but also "past + seq", "2*h + 1".
 *
 *     sum      product { ("+" | " - ") product }
 *     product  factor { "*" factor }
 *     factor   number | name | "(" sum ")"
 *
 * A name is a letter or '_' and letters, digits, '_', '.'. A '-' must have a space on each side:
 * "batch-size" is a name. What reads otherwise is a name as a whole, spaces and all.
 */
#include <assert.h>
#include <string.h>

#include "graph/dim.h"

enum { DEPTH = 16, NAME_BYTES = 128 };

typedef struct reader {
    ort_dim_table *table;
    const char *at;
    int depth;
    bool failed;
} reader;

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_spaces(reader *r)
{
    r->at += strspn(r->at, " ");
}

static ort_dim fail(reader *r)
{
    r->failed = true;
    return ort_dim_unknown();
}

static ort_dim read_name(reader *r)
{
    char name[NAME_BYTES];
    size_t length = 0;
    assert(is_letter(*r->at));
    while (is_letter(r->at[length]) || is_digit(r->at[length]) || r->at[length] == '.')
        length++;
    if (length >= sizeof name || r->at[length] == '(')
        return fail(r);
    memcpy(name, r->at, length);
    name[length] = 0;
    r->at += length;
    return ort_dim_symbol(r->table, name);
}

static ort_dim read_number(reader *r)
{
    int64_t number = 0;
    for (; is_digit(*r->at); r->at++) {
        if (number > INT32_MAX)
            return fail(r);
        number = number * 10 + (*r->at - '0');
    }
    return is_letter(*r->at) || *r->at == '.' ? fail(r) : ort_dim_of(number);
}

static ort_dim read_sum(reader *r);

static ort_dim read_factor(reader *r)
{
    skip_spaces(r);
    if (is_digit(*r->at))
        return read_number(r);
    if (is_letter(*r->at))
        return read_name(r);
    if (*r->at != '(' || ++r->depth > DEPTH)
        return fail(r);
    r->at++;
    ort_dim sum = read_sum(r);
    skip_spaces(r);
    r->depth--;
    if (r->failed || *r->at != ')')
        return fail(r);
    r->at++;
    return sum;
}

static ort_dim read_product(reader *r)
{
    ort_dim product = read_factor(r);
    for (skip_spaces(r); !r->failed && *r->at == '*'; skip_spaces(r)) {
        r->at++;
        product = ort_dim_mul(r->table, product, read_factor(r));
    }
    return product;
}

static ort_dim read_sum(reader *r)
{
    ort_dim sum = read_product(r);
    for (; !r->failed && (*r->at == '+' || *r->at == '-');) {
        bool minus = *r->at == '-';
        if (minus && (r->at[-1] != ' ' || r->at[1] != ' '))
            return fail(r);
        r->at++;
        ort_dim next = read_product(r);
        sum = minus ? ort_dim_sub(r->table, sum, next) : ort_dim_add(r->table, sum, next);
    }
    return sum;
}

ort_dim ort_dim_parse(ort_dim_table *table, const char *text)
{
    reader check = {.at = text, .table = table};
    bool plain = !strpbrk(text, "+*") && !strstr(text, " - ");
    if (plain)
        return ort_dim_symbol(table, text);
    ort_dim sum = read_sum(&check);
    skip_spaces(&check);
    bool read = !check.failed && !*check.at && !ort_dim_known(sum) && sum.expr != ORT_DIM_UNKNOWN;
    return read ? sum : ort_dim_symbol(table, text);
}
