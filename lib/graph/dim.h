/* dim.h - dimensions that may be symbolic: a number, a name ("batch"), or an expression of names
 * ("2*batch + 1", "floor(h/2)"). Expressions are interned polynomials over atoms (names and
 * opaque floor/ceil/max/min terms) with integer coefficients, so equal expressions have equal ids.
 */
#ifndef ORT_GRAPH_DIM_H
#define ORT_GRAPH_DIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ort_dim {
    int64_t size;  /* >= 0 (or any int64 inside a symbolic value) when known; see expr */
    uint32_t expr; /* ORT_DIM_KNOWN: size is the value; ORT_DIM_UNKNOWN; else an expression id */
} ort_dim;

#define ORT_DIM_KNOWN 0u
#define ORT_DIM_UNKNOWN 1u

typedef struct ort_dim_table ort_dim_table; /* one per model; not thread-safe */

ort_dim_table *ort_dim_table_new(void);
void ort_dim_table_free(ort_dim_table *table);
/* A copy in which every id means the same; NULL when memory is exhausted. */
ort_dim_table *ort_dim_table_clone(const ort_dim_table *table);
/* Whether a dim has come out unknown since the last call because memory was exhausted. */
bool ort_dim_table_take_failure(ort_dim_table *table);

static inline ort_dim ort_dim_of(int64_t size)
{
    ort_dim d = {size, ORT_DIM_KNOWN};
    return d;
}
static inline ort_dim ort_dim_unknown(void)
{
    ort_dim d = {-1, ORT_DIM_UNKNOWN};
    return d;
}
static inline bool ort_dim_known(ort_dim d) { return d.expr == ORT_DIM_KNOWN; }

/* The symbol of this name (same name, same dim). */
ort_dim ort_dim_symbol(ort_dim_table *table, const char *name);
/* The same, or the expression that the text is ("past + seq", "2*(h + 1)"): sums, differences with
 * spaces around the sign, and products of names and numbers. Any other text is a name. */
ort_dim ort_dim_parse(ort_dim_table *table, const char *text);
/* Arithmetic: exact when both are known; an expression where one can be formed; unknown when an
 * operand is unknown or memory is exhausted. table may be NULL when all operands are known.
 * Division by zero is unknown. div rounds toward negative infinity, ceil_div up. */
ort_dim ort_dim_add(ort_dim_table *table, ort_dim a, ort_dim b);
ort_dim ort_dim_sub(ort_dim_table *table, ort_dim a, ort_dim b);
ort_dim ort_dim_mul(ort_dim_table *table, ort_dim a, ort_dim b);
ort_dim ort_dim_div(ort_dim_table *table, ort_dim a, ort_dim b);
ort_dim ort_dim_ceil_div(ort_dim_table *table, ort_dim a, ort_dim b);
ort_dim ort_dim_max(ort_dim_table *table, ort_dim a, ort_dim b);
ort_dim ort_dim_min(ort_dim_table *table, ort_dim a, ort_dim b);
/* Certainly the same number. Two unknowns are never equal. */
bool ort_dim_equal(ort_dim a, ort_dim b);
/* Certainly different numbers. */
bool ort_dim_differ(ort_dim a, ort_dim b);
/* Certainly a >= b, whatever sizes the names have (a name is a dim: never negative). */
bool ort_dim_at_least(ort_dim_table *table, ort_dim a, ort_dim b);
/* Known number, or the other one when one is unknown; a known number beats an expression. */
ort_dim ort_dim_merge(ort_dim a, ort_dim b);
/* numpy broadcasting of one axis: 1 yields to the other; unknown when undecidable. false: certainly
 * incompatible (both known, different, neither 1). */
bool ort_dim_broadcast(ort_dim_table *table, ort_dim a, ort_dim b, ort_dim *out);
/* Value of the expression with one symbol replaced; used by --dim overrides. */
ort_dim ort_dim_substitute(ort_dim_table *table, ort_dim d, const char *name, int64_t size);
/* "224", "batch", "2*batch+1", "?". Writes at most `size` bytes with the NUL, and "?" where the
 * expression doesn't fit; returns text. */
char *ort_dim_format(const ort_dim_table *table, ort_dim d, char *text, size_t size);

#endif
