/* integer.h - exact products of 8-bit matrices, for every quantized operator.
 *
 * The kernels multiply unsigned bytes of A by signed bytes of B and sum in int32 (modulo 2^32): no
 * saturation anywhere, any mix of signs and zero points. Bytes of the other sign are shifted by 128
 * together with their zero point, and zero points are taken off the sums:
 *
 *     sum (a - za)(b - zb)  =  sum a b  -  za * sum (b - zb)  -  zb * sum a
 *
 * The sums of B's columns are made when it is packed, those of A's rows only where B has a zero
 * point. Sums of some rows and columns are handed to a finish function while they are in cache.
 */
#ifndef ORT_OP_SHARED_INTEGER_H
#define ORT_OP_SHARED_INTEGER_H

#include "op/op.h"

/* An 8-bit matrix: element (i, j) at data[i * row + j * column]. */
typedef struct ort_bytes {
    const void *data;
    bool is_signed;
    int64_t row, column;
} ort_bytes;

/* Zero points: NULL data is 0; count 1 serves all, else zero of i is element i % count. A tensor
 * without elements has NULL and 0, which the operator refuses. */
typedef struct ort_zeros {
    const void *data;
    bool is_signed;
    int64_t count;
} ort_zeros;

ort_bytes ort_bytes_of(const ort_tensor *t, int64_t row, int64_t column);
ort_zeros ort_zeros_of(const ort_tensor *t); /* t may be NULL */
static inline int ort_zero_at(const ort_zeros *z, int64_t i)
{
    if (!z->data)
        return 0;
    i = z->count == 1 ? 0 : i % z->count;
    return z->is_signed ? ((const int8_t *)z->data)[i] : ((const uint8_t *)z->data)[i];
}

/* Columns of sums that a finish function gets at most. */
#define ORT_INTEGER_COLUMNS 256

/* Sums of rows [row, row + m) and columns [column, column + n), with row stride ld. To all those of
 * row i, more[i] is still to be added (NULL: 0); not NULL only if the product says `adds_rows`. */
typedef struct ort_integer_tile {
    int64_t row, column, m, n;
    int32_t *sums;
    int64_t ld;
    const int32_t *more;
} ort_integer_tile;
typedef void ort_integer_finish(void *arg, const ort_integer_tile *tile);

typedef struct ort_integer_product {
    int64_t m, n, depth;
    ort_bytes a;           /* [m][depth], read in place where the kernels can */
    const float *floats;   /* NULL; or [m][depth], of which A is made by this scale and the one zero
                            * point */
    float scale;
    ort_zeros a_zero;      /* one, or per row */
    const void *packed;    /* B with its zero points, by ort_integer_pack */
    void *space;           /* ort_integer_rows_bytes() */
    int32_t *sums;         /* where all sums are to lie, with row stride ld; NULL: in scratch */
    int64_t ld;
    ort_integer_finish *finish; /* NULL: sums are all */
    bool adds_rows;        /* it adds what all sums of a row lack */
    void *arg;
} ort_integer_product;

/* Bytes of the workspace for A[m][depth], and of B[depth][n] packed; false on overflow. */
bool ort_integer_rows_bytes(const ort_kernels *k, int64_t m, int64_t depth, size_t *bytes);
bool ort_integer_packed_bytes(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes);
/* Zero points of B are one, or per column. `packed` is aligned to 64 bytes. */
void ort_integer_pack(const ort_kernels *k, int64_t depth, int64_t n, const ort_bytes *b,
                      const ort_zeros *zeros, void *packed);
/* The same by fours where the tier has those and weights allow it, for ort_integer_multiply alone;
 * these bytes have room for it. */
bool ort_integer_fours_bytes(const ort_kernels *k, int64_t depth, int64_t n, size_t *bytes);
void ort_integer_pack_fours(const ort_kernels *k, int64_t depth, int64_t n, const ort_bytes *b,
                            const ort_zeros *zeros, void *packed);
/* As ort_integer_pack, on the call's pool. */
void ort_integer_pack_now(const ort_call *call, int64_t depth, int64_t n, const ort_bytes *b,
                          const ort_zeros *zeros, void *packed);

/* Where the parts of a packed B lie. */
typedef struct ort_integer_parts {
    const int32_t *sum, *zero; /* per column: of b - zb, and zb; of the signed bytes */
    const char *panels;
    bool shifted;              /* not all zero points are 0 */
    bool same;                 /* all columns have the zero point of the first */
    bool fours;                /* panels are by fours */
} ort_integer_parts;
ort_integer_parts ort_integer_parts_of(const ort_kernels *k, int64_t n, const void *packed);

/* Scratch per thread that the product needs. */
size_t ort_integer_thread_bytes(const ort_kernels *k);
void ort_integer_multiply(const ort_call *call, const ort_integer_product *p);

#endif
