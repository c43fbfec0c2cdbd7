/* code_types.c - the table of types of codes. */
#include "quantize/code_types.h"

typedef struct row {
    ort_dtype dtype;
    int opset, ir;
} row;

static const row rows[] = {
    {ORT_DTYPE_INT8, 13, 3},   {ORT_DTYPE_UINT8, 13, 3}, {ORT_DTYPE_INT16, 21, 3},
    {ORT_DTYPE_UINT16, 21, 3}, {ORT_DTYPE_INT4, 21, 10}, {ORT_DTYPE_UINT4, 21, 10},
    {ORT_DTYPE_INT2, 25, 13},  {ORT_DTYPE_UINT2, 25, 13}, {ORT_DTYPE_FLOAT8E4M3FN, 19, 9},
    {ORT_DTYPE_FLOAT8E4M3FNUZ, 19, 9}, {ORT_DTYPE_FLOAT8E5M2, 19, 9},
    {ORT_DTYPE_FLOAT8E5M2FNUZ, 19, 9},
};

static const row *row_of(ort_dtype dtype)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dtype == dtype)
            return &rows[i];
    return NULL;
}

int ort_codes_opset(ort_dtype dtype)
{
    const row *r = row_of(dtype);
    return r ? r->opset : 0;
}

int ort_codes_ir(ort_dtype dtype)
{
    const row *r = row_of(dtype);
    return r ? r->ir : 0;
}
