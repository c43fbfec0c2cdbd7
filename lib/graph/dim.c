/* dim.c - symbolic dimensions (dim.h).
 *
 * An expression is a polynomial: terms with integer coefficients over products of atoms. An atom
 * is a name, or an opaque function (floor, ceil, max, min) of two expressions. Terms are sorted by
 * their atoms and never zero, so equal polynomials have equal bytes and interning gives them equal
 * ids. What would grow beyond the limits becomes unknown.
 */
#include "graph/dim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/hashmap.h"
#include "base/vec.h"

enum { MAX_TERMS = 24, MAX_DEGREE = 7, FIRST_ID = 2, MAX_EXPRESSIONS = 1 << 20 };

typedef struct term {
    int64_t coefficient;
    uint32_t degree;
    uint32_t atom[MAX_DEGREE]; /* ascending, zero beyond degree */
} term;

typedef struct poly {
    uint32_t count;
    term terms[MAX_TERMS]; /* ascending by atoms */
} poly;

typedef enum atom_kind { ATOM_NAME, ATOM_FLOOR, ATOM_CEIL, ATOM_MAX, ATOM_MIN } atom_kind;

typedef struct atom {
    atom_kind kind;
    const char *name; /* ATOM_NAME */
    ort_dim a, b;     /* operands of the others */
} atom;

typedef struct expression {
    const term *terms;
    uint32_t count;
} expression;

struct ort_dim_table {
    ort_arena arena;
    ORT_VEC(expression) expressions; /* id - FIRST_ID */
    ORT_VEC(atom) atoms;
    ort_hashmap by_terms, by_atom;
    bool failed; /* an unknown dim was given because memory is exhausted */
};

ort_dim_table *ort_dim_table_new(void)
{
    return calloc(1, sizeof(ort_dim_table));
}

void ort_dim_table_free(ort_dim_table *table)
{
    if (!table)
        return;
    ort_arena_release(&table->arena);
    ort_vec_release(&table->expressions);
    ort_vec_release(&table->atoms);
    ort_hashmap_release(&table->by_terms);
    ort_hashmap_release(&table->by_atom);
    free(table);
}

static char *copy_bytes(ort_arena *arena, const char *bytes, size_t count)
{
    char *copy = ort_arena_alloc(arena, count);
    return copy ? memcpy(copy, bytes, count) : NULL;
}

ort_dim_table *ort_dim_table_clone(const ort_dim_table *table)
{
    ort_dim_table *copy = ort_dim_table_new();
    bool ok = copy != NULL;
    /* What is interned in the order of its number is copied in that of the maps. */
    assert(table->by_atom.count == table->atoms.count);
    assert(table->by_terms.count == table->expressions.count);
    for (size_t i = 0; ok && i < table->by_atom.count; i++) {
        const ort_hashmap_entry *e = &table->by_atom.entries[i];
        assert(e->value == i);
        atom a = table->atoms.data[e->value];
        char *key = copy_bytes(&copy->arena, e->key, e->key_length + 1);
        if (a.kind == ATOM_NAME)
            a.name = key;
        ok = key && ort_vec_push(&copy->atoms, a) &&
             ort_hashmap_put(&copy->by_atom, key, e->key_length, e->value);
    }
    for (size_t i = 0; ok && i < table->expressions.count; i++) {
        expression e = table->expressions.data[i];
        size_t bytes = e.count * sizeof(term);
        char *terms = copy_bytes(&copy->arena, (const char *)e.terms, bytes);
        e.terms = (const term *)(const void *)terms;
        ok = terms && ort_vec_push(&copy->expressions, e) &&
             ort_hashmap_put(&copy->by_terms, terms, bytes, i + FIRST_ID);
    }
    if (!ok) {
        ort_dim_table_free(copy);
        return NULL;
    }
    return copy;
}

/* ---- polynomials */

static bool load(const ort_dim_table *table, ort_dim d, poly *p)
{
    p->count = 0;
    if (d.expr == ORT_DIM_UNKNOWN)
        return false;
    if (d.expr == ORT_DIM_KNOWN) {
        if (d.size) {
            memset(&p->terms[0], 0, sizeof p->terms[0]);
            p->terms[0].coefficient = d.size;
            p->count = 1;
        }
        return true;
    }
    if (!table || d.expr - FIRST_ID >= table->expressions.count)
        return false;
    const expression *e = &table->expressions.data[d.expr - FIRST_ID];
    assert(e->count > 0 && e->count <= MAX_TERMS);
    memcpy(p->terms, e->terms, e->count * sizeof(term));
    p->count = e->count;
    return true;
}

static int compare_atoms(const term *a, const term *b)
{
    if (a->degree != b->degree)
        return a->degree > b->degree ? -1 : 1; /* highest degree first, the constant last */
    for (uint32_t i = 0; i < a->degree; i++)
        if (a->atom[i] != b->atom[i])
            return a->atom[i] < b->atom[i] ? -1 : 1;
    return 0;
}

/* Insert keeping order; false when a limit is passed. */
static bool add_term(poly *p, const term *t)
{
    uint32_t at = 0;
    assert(p->count <= MAX_TERMS && t->degree <= MAX_DEGREE);
    if (t->coefficient == 0)
        return true;
    while (at < p->count && compare_atoms(&p->terms[at], t) < 0)
        at++;
    if (at < p->count && compare_atoms(&p->terms[at], t) == 0) {
        if (!ort_add_i64(p->terms[at].coefficient, t->coefficient, &p->terms[at].coefficient))
            return false;
        if (p->terms[at].coefficient == 0) {
            memmove(&p->terms[at], &p->terms[at + 1], (p->count - at - 1) * sizeof(term));
            p->count--;
        }
        return true;
    }
    if (p->count == MAX_TERMS)
        return false;
    memmove(&p->terms[at + 1], &p->terms[at], (p->count - at) * sizeof(term));
    p->terms[at] = *t;
    p->count++;
    return true;
}

static bool multiply_terms(const term *a, const term *b, term *out)
{
    memset(out, 0, sizeof *out);
    if (a->degree + b->degree > MAX_DEGREE ||
        !ort_mul_i64(a->coefficient, b->coefficient, &out->coefficient))
        return false;
    uint32_t i = 0, j = 0;
    while (i < a->degree || j < b->degree)
        out->atom[out->degree++] =
            j == b->degree || (i < a->degree && a->atom[i] <= b->atom[j]) ? a->atom[i++]
                                                                         : b->atom[j++];
    assert(out->degree == a->degree + b->degree);
    return true;
}

static ort_dim out_of_memory(ort_dim_table *table)
{
    table->failed = true;
    return ort_dim_unknown();
}

bool ort_dim_table_take_failure(ort_dim_table *table)
{
    bool failed = table && table->failed;
    if (table)
        table->failed = false;
    return failed;
}

/* The order that gives equal polynomials equal bytes. */
static __attribute__((unused)) bool is_sorted(const poly *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (!p->terms[i].coefficient ||
            (i && compare_atoms(&p->terms[i - 1], &p->terms[i]) >= 0))
            return false;
    return true;
}

/* The dim of a polynomial: known, or an interned expression. */
static ort_dim intern(ort_dim_table *table, const poly *p)
{
    assert(is_sorted(p));
    if (p->count == 0)
        return ort_dim_of(0);
    if (p->count == 1 && p->terms[0].degree == 0)
        return ort_dim_of(p->terms[0].coefficient);
    if (!table || table->expressions.count >= MAX_EXPRESSIONS)
        return ort_dim_unknown();
    size_t bytes = p->count * sizeof(term);
    uint64_t id;
    if (ort_hashmap_get(&table->by_terms, (const char *)p->terms, bytes, &id))
        return (ort_dim){-1, (uint32_t)id};
    term *terms = ort_arena_alloc(&table->arena, bytes);
    if (!terms)
        return out_of_memory(table);
    memcpy(terms, p->terms, bytes);
    id = table->expressions.count + FIRST_ID;
    if (!ort_vec_push(&table->expressions, (expression){terms, p->count}))
        return out_of_memory(table);
    if (!ort_hashmap_put(&table->by_terms, (const char *)terms, bytes, id)) {
        table->expressions.count--;
        return out_of_memory(table);
    }
    return (ort_dim){-1, (uint32_t)id};
}

static ort_dim atom_dim(ort_dim_table *table, uint32_t index)
{
    assert(index < table->atoms.count);
    poly p = {.count = 1};
    p.terms[0] = (term){.coefficient = 1, .degree = 1, .atom = {index}};
    return intern(table, &p);
}

/* key must be in the arena. */
static ort_dim add_atom(ort_dim_table *table, const char *key, size_t length, const atom *a)
{
    assert(length && (a->kind == ATOM_NAME) == (key[0] != 0)); /* keys of two kinds never meet */
    if (!ort_vec_push(&table->atoms, *a))
        return out_of_memory(table);
    if (!ort_hashmap_put(&table->by_atom, key, length, table->atoms.count - 1)) {
        table->atoms.count--; /* cloning relies on an entry per atom */
        return out_of_memory(table);
    }
    return atom_dim(table, (uint32_t)table->atoms.count - 1);
}

ort_dim ort_dim_symbol(ort_dim_table *table, const char *name)
{
    uint64_t index;
    size_t length = strlen(name);
    if (length == 0)
        return ort_dim_unknown();
    if (ort_hashmap_get(&table->by_atom, name, length, &index))
        return atom_dim(table, (uint32_t)index);
    char *copy = ort_arena_strdup(&table->arena, name);
    if (!copy)
        return out_of_memory(table);
    return add_atom(table, copy, length, &(atom){.kind = ATOM_NAME, .name = copy});
}

/* floor(a/b) and its kin. The key begins with a NUL, which no name does. */
static ort_dim opaque(ort_dim_table *table, atom_kind kind, ort_dim a, ort_dim b)
{
    struct {
        uint32_t zero, kind, a_expr, b_expr;
        int64_t a_size, b_size;
    } key = {0, kind, a.expr, b.expr, a.expr ? 0 : a.size, b.expr ? 0 : b.size};
    uint64_t index;
    if (!table || a.expr == ORT_DIM_UNKNOWN || b.expr == ORT_DIM_UNKNOWN)
        return ort_dim_unknown();
    if (ort_hashmap_get(&table->by_atom, (const char *)&key, sizeof key, &index))
        return atom_dim(table, (uint32_t)index);
    char *copy = ort_arena_alloc(&table->arena, sizeof key + 1); /* clone copies a NUL too */
    if (!copy)
        return out_of_memory(table);
    memcpy(copy, &key, sizeof key);
    return add_atom(table, copy, sizeof key, &(atom){.kind = kind, .a = a, .b = b});
}

/* ---- arithmetic */

static ort_dim add_scaled(ort_dim_table *table, ort_dim a, ort_dim b, int64_t scale)
{
    poly p, q;
    if (!load(table, a, &p) || !load(table, b, &q))
        return ort_dim_unknown();
    for (uint32_t i = 0; i < q.count; i++) {
        term t = q.terms[i];
        if (!ort_mul_i64(t.coefficient, scale, &t.coefficient) || !add_term(&p, &t))
            return ort_dim_unknown();
    }
    return intern(table, &p);
}

ort_dim ort_dim_add(ort_dim_table *table, ort_dim a, ort_dim b)
{
    return add_scaled(table, a, b, 1);
}

ort_dim ort_dim_sub(ort_dim_table *table, ort_dim a, ort_dim b)
{
    return add_scaled(table, a, b, -1);
}

ort_dim ort_dim_mul(ort_dim_table *table, ort_dim a, ort_dim b)
{
    poly p, q, out = {.count = 0};
    if (!load(table, a, &p) || !load(table, b, &q))
        return ort_dim_unknown();
    for (uint32_t i = 0; i < p.count; i++)
        for (uint32_t j = 0; j < q.count; j++) {
            term t;
            if (!multiply_terms(&p.terms[i], &q.terms[j], &t) || !add_term(&out, &t))
                return ort_dim_unknown();
        }
    return intern(table, &out);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    assert(b != 0 && (b != -1 || a != INT64_MIN));
    int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

/* The term a / b when it is a term with an integer coefficient. */
static bool divide_term(const term *a, const term *b, term *out)
{
    memset(out, 0, sizeof *out);
    if (b->coefficient == 0 || b->coefficient == -1 || a->coefficient % b->coefficient)
        return false;
    out->coefficient = a->coefficient / b->coefficient;
    uint32_t j = 0;
    for (uint32_t i = 0; i < a->degree; i++)
        if (j < b->degree && a->atom[i] == b->atom[j])
            j++;
        else
            out->atom[out->degree++] = a->atom[i];
    return j == b->degree;
}

/* a == k * b for a whole number or one term k. */
static bool divide_exactly(const poly *a, const poly *b, poly *out)
{
    out->count = 0;
    if (b->count == 1) {
        for (uint32_t i = 0; i < a->count; i++) {
            term t;
            if (!divide_term(&a->terms[i], &b->terms[0], &t) || !add_term(out, &t))
                return false;
        }
        return true;
    }
    term k;
    if (a->count != b->count || a->count == 0 || !divide_term(&a->terms[0], &b->terms[0], &k))
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        term t;
        if (!multiply_terms(&b->terms[i], &k, &t) || compare_atoms(&t, &a->terms[i]) ||
            t.coefficient != a->terms[i].coefficient)
            return false;
    }
    return add_term(out, &k);
}

static ort_dim divide(ort_dim_table *table, atom_kind kind, ort_dim a, ort_dim b);

/* floor((floor(a/m) + c) / b) is floor((a + c*m) / (m*b)), and so for ceil: chains of strided
 * layers stay short. Unknown when p is no such sum. */
static ort_dim divide_quotient(ort_dim_table *table, atom_kind kind, const poly *p, int64_t b)
{
    const term *t = &p->terms[0];
    bool sum = p->count == 1 || (p->count == 2 && p->terms[1].degree == 0);
    int64_t c = p->count == 2 ? p->terms[1].coefficient : 0, product, offset;
    assert(p->count > 0 && b > 0);
    if (!sum || t->degree != 1 || t->coefficient != 1)
        return ort_dim_unknown();
    atom inner = table->atoms.data[t->atom[0]];
    if (inner.kind != kind || !ort_dim_known(inner.b) || inner.b.size <= 0 ||
        !ort_mul_i64(inner.b.size, b, &product) || !ort_mul_i64(inner.b.size, c, &offset))
        return ort_dim_unknown();
    return divide(table, kind, ort_dim_add(table, inner.a, ort_dim_of(offset)),
                  ort_dim_of(product));
}

/* By a number: what divides comes out of the floor, the rest stays in. */
static ort_dim divide_by_number(ort_dim_table *table, atom_kind kind, const poly *p, int64_t b)
{
    poly whole = {.count = 0}, rest = {.count = 0};
    for (uint32_t i = 0; i < p->count; i++) {
        term out = p->terms[i], in = out;
        out.coefficient = in.coefficient % b == 0 ? in.coefficient / b
                          : in.degree == 0        ? floor_div(in.coefficient, b)
                                                  : 0;
        in.coefficient -= out.coefficient * b;
        assert(in.degree || (in.coefficient >= 0 && in.coefficient < b));
        if (!add_term(&whole, &out) || !add_term(&rest, &in))
            return ort_dim_unknown();
    }
    ort_dim remainder = intern(table, &rest);
    ort_dim quotient = intern(table, &whole);
    ort_dim inner = ort_dim_known(remainder) ? divide(table, kind, remainder, ort_dim_of(b))
                                             : divide_quotient(table, kind, &rest, b);
    if (inner.expr == ORT_DIM_UNKNOWN)
        inner = opaque(table, kind, remainder, ort_dim_of(b));
    return ort_dim_add(table, quotient, inner);
}

static ort_dim divide(ort_dim_table *table, atom_kind kind, ort_dim a, ort_dim b)
{
    poly p, q, exact;
    if (ort_dim_known(b) && b.size == 0)
        return ort_dim_unknown();
    if (ort_dim_known(a) && ort_dim_known(b)) {
        if (b.size == -1)
            return a.size == INT64_MIN ? ort_dim_unknown() : ort_dim_of(-a.size);
        int64_t f = floor_div(a.size, b.size);
        return ort_dim_of(kind == ATOM_CEIL && f * b.size != a.size ? f + 1 : f);
    }
    if (!load(table, a, &p) || !load(table, b, &q))
        return ort_dim_unknown();
    if (divide_exactly(&p, &q, &exact))
        return intern(table, &exact);
    if (ort_dim_known(b) && b.size > 0)
        return divide_by_number(table, kind, &p, b.size);
    return opaque(table, kind, a, b);
}

ort_dim ort_dim_div(ort_dim_table *table, ort_dim a, ort_dim b)
{
    return divide(table, ATOM_FLOOR, a, b);
}

ort_dim ort_dim_ceil_div(ort_dim_table *table, ort_dim a, ort_dim b)
{
    return divide(table, ATOM_CEIL, a, b);
}

static bool surely_at_least(const ort_dim_table *table, ort_dim d, int64_t bound, int depth);

static bool atom_never_negative(const ort_dim_table *table, uint32_t index, int depth)
{
    const atom *a = &table->atoms.data[index];
    switch (a->kind) {
    case ATOM_NAME: return true;
    case ATOM_MAX:
        return surely_at_least(table, a->a, 0, depth) || surely_at_least(table, a->b, 0, depth);
    default:
        return surely_at_least(table, a->a, 0, depth) && surely_at_least(table, a->b, 0, depth);
    }
}

/* Names are never negative, so a polynomial of them without negative coefficients isn't either. */
static bool surely_at_least(const ort_dim_table *table, ort_dim d, int64_t bound, int depth)
{
    poly p;
    int64_t constant = 0;
    if (ort_dim_known(d))
        return d.size >= bound;
    if (depth > 20 || !load(table, d, &p))
        return false;
    for (uint32_t i = 0; i < p.count; i++) {
        if (p.terms[i].coefficient < 0)
            return false;
        if (p.terms[i].degree == 0)
            constant = p.terms[i].coefficient;
        for (uint32_t j = 0; j < p.terms[i].degree; j++)
            if (!atom_never_negative(table, p.terms[i].atom[j], depth + 1))
                return false;
    }
    return constant >= bound;
}

bool ort_dim_at_least(ort_dim_table *table, ort_dim a, ort_dim b)
{
    return surely_at_least(table, ort_dim_sub(table, a, b), 0, 0);
}

static ort_dim extreme(ort_dim_table *table, atom_kind kind, ort_dim a, ort_dim b)
{
    bool is_max = kind == ATOM_MAX;
    if (a.expr == ORT_DIM_UNKNOWN || b.expr == ORT_DIM_UNKNOWN)
        return ort_dim_unknown();
    ort_dim difference = ort_dim_sub(table, a, b);
    if (difference.expr != ORT_DIM_UNKNOWN) {
        if (surely_at_least(table, difference, 0, 0))
            return is_max ? a : b;
        if (surely_at_least(table, ort_dim_sub(table, b, a), 0, 0))
            return is_max ? b : a;
    }
    /* "To the end" in Slice: no dimension reaches these. */
    ort_dim known = ort_dim_known(a) ? a : b, other = ort_dim_known(a) ? b : a;
    if (ort_dim_known(known) && known.size >= INT32_MAX)
        return is_max ? known : other;
    return opaque(table, kind, a, b);
}

ort_dim ort_dim_max(ort_dim_table *table, ort_dim a, ort_dim b)
{
    return extreme(table, ATOM_MAX, a, b);
}

ort_dim ort_dim_min(ort_dim_table *table, ort_dim a, ort_dim b)
{
    return extreme(table, ATOM_MIN, a, b);
}

/* ---- comparing */

bool ort_dim_equal(ort_dim a, ort_dim b)
{
    return a.expr == b.expr && a.expr != ORT_DIM_UNKNOWN &&
           (a.expr != ORT_DIM_KNOWN || a.size == b.size);
}

bool ort_dim_differ(ort_dim a, ort_dim b)
{
    return ort_dim_known(a) && ort_dim_known(b) && a.size != b.size;
}

ort_dim ort_dim_merge(ort_dim a, ort_dim b)
{
    if (ort_dim_known(a) || b.expr == ORT_DIM_UNKNOWN)
        return a;
    return ort_dim_known(b) || a.expr == ORT_DIM_UNKNOWN ? b : a;
}

bool ort_dim_broadcast(ort_dim_table *table, ort_dim a, ort_dim b, ort_dim *out)
{
    bool one_a = ort_dim_known(a) && a.size == 1, one_b = ort_dim_known(b) && b.size == 1;
    /* A known number other than 1 wins: the other is 1 or the same. */
    *out = one_a                                     ? b
           : one_b || ort_dim_known(a)               ? a
           : ort_dim_known(b) || ort_dim_equal(a, b) ? b
                                                     : ort_dim_unknown();
    return one_a || one_b || !ort_dim_differ(a, b);
}

/* ---- substituting */

static ort_dim substitute(ort_dim_table *table, ort_dim d, const char *name, int64_t size,
                          int depth);

static ort_dim substitute_atom(ort_dim_table *table, uint32_t index, const char *name, int64_t size,
                               int depth)
{
    atom a = table->atoms.data[index];
    if (a.kind == ATOM_NAME)
        return strcmp(a.name, name) ? atom_dim(table, index) : ort_dim_of(size);
    ort_dim x = substitute(table, a.a, name, size, depth);
    ort_dim y = substitute(table, a.b, name, size, depth);
    return a.kind == ATOM_FLOOR  ? ort_dim_div(table, x, y)
           : a.kind == ATOM_CEIL ? ort_dim_ceil_div(table, x, y)
           : a.kind == ATOM_MAX  ? ort_dim_max(table, x, y)
                                 : ort_dim_min(table, x, y);
}

static ort_dim substitute(ort_dim_table *table, ort_dim d, const char *name, int64_t size,
                          int depth)
{
    poly p;
    if (d.expr == ORT_DIM_KNOWN || d.expr == ORT_DIM_UNKNOWN)
        return d;
    if (depth > 100 || !load(table, d, &p))
        return ort_dim_unknown();
    ort_dim sum = ort_dim_of(0);
    for (uint32_t i = 0; i < p.count; i++) {
        ort_dim product = ort_dim_of(p.terms[i].coefficient);
        for (uint32_t j = 0; j < p.terms[i].degree; j++) {
            ort_dim factor = substitute_atom(table, p.terms[i].atom[j], name, size, depth + 1);
            product = ort_dim_mul(table, product, factor);
        }
        sum = ort_dim_add(table, sum, product);
    }
    return sum;
}

ort_dim ort_dim_substitute(ort_dim_table *table, ort_dim d, const char *name, int64_t size)
{
    return table ? substitute(table, d, name, size, 0) : d;
}

/* ---- text */

typedef struct writer {
    char *text;
    size_t size, used;
    bool cut;
} writer;

static void put(writer *w, const char *s)
{
    for (; *s; s++)
        if (w->used + 1 < w->size)
            w->text[w->used++] = *s;
        else
            w->cut = true;
}

static void put_dim(writer *w, const ort_dim_table *table, ort_dim d, int depth);

static void put_atom(writer *w, const ort_dim_table *table, uint32_t index, int depth)
{
    static const char *const words[] = {"", "floor(", "ceil(", "max(", "min("};
    assert(index < table->atoms.count);
    const atom *a = &table->atoms.data[index];
    if (a->kind == ATOM_NAME) {
        put(w, a->name);
        return;
    }
    bool quotient = a->kind == ATOM_FLOOR || a->kind == ATOM_CEIL;
    put(w, words[a->kind]);
    bool parentheses = quotient && !ort_dim_known(a->a) &&
                       table->expressions.data[a->a.expr - FIRST_ID].count > 1;
    put(w, parentheses ? "(" : "");
    put_dim(w, table, a->a, depth + 1);
    put(w, parentheses ? ")" : "");
    put(w, quotient ? "/" : ",");
    bool grouped = quotient && !ort_dim_known(a->b);
    put(w, grouped ? "(" : "");
    put_dim(w, table, a->b, depth + 1);
    put(w, grouped ? "))" : ")");
}

static void put_term(writer *w, const ort_dim_table *table, const term *t, bool first, int depth)
{
    char number[32];
    int64_t c = t->coefficient;
    put(w, c < 0 ? "-" : first ? "" : "+");
    uint64_t magnitude = c < 0 ? 0 - (uint64_t)c : (uint64_t)c;
    if (magnitude != 1 || t->degree == 0) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)magnitude);
        put(w, number);
        put(w, t->degree ? "*" : "");
    }
    for (uint32_t i = 0; i < t->degree; i++) {
        put(w, i ? "*" : "");
        put_atom(w, table, t->atom[i], depth);
    }
}

static void put_dim(writer *w, const ort_dim_table *table, ort_dim d, int depth)
{
    char number[32];
    if (ort_dim_known(d)) {
        snprintf(number, sizeof number, "%lld", (long long)d.size);
        put(w, number);
        return;
    }
    if (!table || d.expr == ORT_DIM_UNKNOWN || depth > 50 ||
        d.expr - FIRST_ID >= table->expressions.count) {
        put(w, "?");
        return;
    }
    const expression *e = &table->expressions.data[d.expr - FIRST_ID];
    for (uint32_t i = 0; i < e->count; i++)
        put_term(w, table, &e->terms[i], i == 0, depth);
}

char *ort_dim_format(const ort_dim_table *table, ort_dim d, char *text, size_t size)
{
    writer w = {text, size, 0, false};
    put_dim(&w, table, d, 0);
    if (w.cut && size > 1) { /* half an expression would be another one */
        text[0] = '?';
        w.used = 1;
    }
    assert(!size || w.used < size);
    if (size)
        text[w.used] = '\0';
    return text;
}
