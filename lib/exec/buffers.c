/* buffers.c - size-classed blocks of one run. Classes step by quarters of a power of two, so a
 * block wastes at most a fifth of itself. */
#include "exec/buffers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/huge.h"

void *ort_memory_new(size_t bytes)
{
    void *memory = NULL;
    bool large = bytes >= ORT_MEMORY_LARGE;
    if (posix_memalign(&memory, large ? ORT_MEMORY_LARGE : 64, bytes ? bytes : 64))
        return NULL;
    if (large)
        (void)ort_huge_ask(memory, bytes);
    return memory;
}

/* Rounds *bytes up to its class; -1 when absurd. */
static int size_class(size_t *bytes)
{
    size_t n = *bytes < 64 ? 64 : *bytes;
    int log = 63 - __builtin_clzll((unsigned long long)n);
    size_t quarter = (size_t)1 << (log - 2), base = (size_t)1 << log;
    size_t steps = (n - base + quarter - 1) / quarter;
    if (log > 56)
        return -1;
    assert(base + steps * quarter >= n && log * 4 + (int)steps < ORT_SIZE_CLASSES);
    *bytes = base + steps * quarter;
    return log * 4 + (int)steps;
}

/* Kept blocks go back to the system. */
static void drop_free_blocks(ort_buffers *buffers)
{
    for (int i = 0; i < ORT_SIZE_CLASSES; i++) {
        for (ort_block *b = buffers->free_blocks[i], *next; b; b = next) {
            next = b->next;
            assert(!b->references);
            ort_buffers_refund(buffers, b->bytes);
            free(b);
        }
        buffers->free_blocks[i] = NULL;
    }
}

ort_status ort_buffers_account(ort_buffers *buffers, size_t bytes, const char *what, ort_error *err)
{
    if (ort_account_charge(buffers->account, bytes))
        return ORT_OK;
    drop_free_blocks(buffers); /* of other sizes: nobody waits for them */
    if (ort_account_charge(buffers->account, bytes))
        return ORT_OK;
    return ort_account_refuse(buffers->account, bytes, what, err);
}

void ort_buffers_refund(ort_buffers *buffers, size_t bytes)
{
    ort_account_refund(buffers->account, bytes);
}

ort_status ort_buffers_get(ort_buffers *buffers, size_t bytes, ort_block **block, ort_error *err)
{
    size_t wanted = bytes;
    int class_ = size_class(&wanted);
    ort_block *b;
    if (class_ < 0)
        return ort_error_memory(err, bytes);
    b = buffers->free_blocks[class_];
    if (b) {
        assert(!b->references && b->owner == buffers && b->bytes >= bytes);
        buffers->free_blocks[class_] = b->next;
    } else {
        ORT_TRY(ort_buffers_account(buffers, wanted, "a tensor", err));
        b = ort_memory_new(wanted + 64);
        if (!b) {
            ort_buffers_refund(buffers, wanted);
            return ort_error_memory(err, bytes);
        }
        *b = (ort_block){NULL, buffers, wanted, class_, 0};
    }
    b->references = 1;
    *block = b;
    return ORT_OK;
}

void ort_block_drop(ort_block *block)
{
    ort_buffers *owner;
    assert(!block || block->references > 0);
    if (!block || --block->references > 0)
        return;
    owner = block->owner;
    block->next = owner->free_blocks[block->size_class];
    owner->free_blocks[block->size_class] = block;
}

void ort_buffers_reset(ort_buffers *buffers)
{
    if (buffers->strings.used_bytes)
        ort_arena_release(&buffers->strings);
}

void ort_buffers_release(ort_buffers *buffers)
{
    drop_free_blocks(buffers);
    ort_arena_release(&buffers->strings);
    ort_account_release(buffers->account);
    memset(buffers, 0, sizeof *buffers);
}

static void release_block(void *arg, void *storage)
{
    ort_block_drop(storage);
}

ort_status ort_block_to_value(ort_block *block, const ort_tensor *tensor, ort_value **value,
                              ort_error *err)
{
    assert(block->references > 0 && tensor->data == ort_block_data(block));
    assert(!tensor->stride && ort_tensor_bytes(tensor) <= block->bytes);
    ORT_TRY(ort_value_new_view(tensor, value, err));
    (*value)->storage = block;
    (*value)->release = release_block;
    (*value)->release_arg = block->owner;
    return ORT_OK;
}

ort_status ort_buffers_new_value(ort_buffers *buffers, ort_dtype dtype, const ort_shape *shape,
                                 ort_value **value, ort_error *err)
{
    ort_tensor tensor; /* member by member: to clear all of it first takes as long as the rest */
    ort_block *block;
    ort_status status;
    tensor.dtype = dtype;
    tensor.shape = *shape;
    tensor.data = NULL;
    tensor.stride = NULL;
    ORT_TRY(ort_shape_check(shape, dtype, err));
    ORT_TRY(ort_buffers_get(buffers, ort_tensor_bytes(&tensor), &block, err));
    tensor.data = ort_block_data(block);
    status = ort_block_to_value(block, &tensor, value, err);
    if (status != ORT_OK)
        ort_block_drop(block);
    return status;
}

bool ort_value_detach(ort_value *value)
{
    ort_block *block;
    if (value->release != release_block)
        return value->storage != NULL;
    block = value->storage;
    if (block->references != 1)
        return false;
    ort_buffers_refund(block->owner, block->bytes);
    value->release = NULL;
    value->release_arg = NULL;
    return true;
}
