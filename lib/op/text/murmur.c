/* murmur.c - com.microsoft MurmurHash3: the 32-bit hash (x86 variant, public domain, A. Appleby) of
 * the bytes of every element, numbers in little-endian order. */
#include <string.h>

#include "op/op.h"

static uint32_t rotate_left(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static uint32_t scramble(uint32_t k)
{
    return rotate_left(k * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static uint32_t hash_bytes(const void *data, size_t length, uint32_t seed)
{
    const unsigned char *at = data;
    uint32_t hash = seed, k = 0;
    for (size_t i = 0; i + 4 <= length; i += 4) {
        memcpy(&k, at + i, 4);
        hash = rotate_left(hash ^ scramble(k), 13) * 5 + 0xe6546b64u;
    }
    k = 0;
    for (size_t i = length & ~(size_t)3; i < length; i++)
        k |= (uint32_t)at[i] << (8 * (i & 3));
    hash ^= scramble(k) ^ (uint32_t)length; /* scramble(0) is 0 */
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

static ort_status murmur_infer(ort_infer *x, ort_error *err)
{
    bool positive = ort_node_attr_int(x->node, "positive") == 1;
    x->out[0].type.dtype = positive ? ORT_DTYPE_UINT32 : ORT_DTYPE_INT32;
    return ORT_OK;
}

typedef struct murmur_state {
    int64_t seed;
} murmur_state;

static const ort_bind murmur_bind[] = {ORT_BIND(murmur_state, seed), {0}};

static ort_status murmur_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    uint32_t *y = ort_call_out(call, 0)->data;
    uint32_t seed = (uint32_t)((const murmur_state *)call->state)->seed;
    int64_t n = ort_tensor_count(x);
    size_t each = (size_t)ort_dtype_bits(x->dtype) / 8;
    for (int64_t i = 0; i < n; i++)
        if (x->dtype == ORT_DTYPE_STRING) {
            const ort_string *text = (const ort_string *)x->data + i;
            y[i] = hash_bytes(text->ptr, text->length, seed);
        } else {
            y[i] = hash_bytes((const char *)x->data + (size_t)i * each, each, seed);
        }
    return ORT_OK;
}

static const ort_op_impl murmur_impl = {
    .state = sizeof(murmur_state), .bind = murmur_bind, .rule = "same", .infer = murmur_infer,
    .run = murmur_run,
};

const ort_op ort_ops_murmur[] = {
    {MS, "MurmurHash3", 1, "X:T1 -> Y:T2", "T1:i32,u32,i64,u64,f32,f64,str T2:u32,i32",
     "positive:i=1 seed:i=0", 0, &murmur_impl},
    {0},
};
