/* value_maps.c - maps of the same keys, one for each row of a matrix, as ZipMap gives them: values
 * that are made together, and mostly freed together, in one block of memory. Each counts its own
 * references; the block goes with the last of them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/tensor.h"
#include "tensor/value_block.h"

typedef struct row_map {
    ort_value map, values;
    ort_value *items[2];
} row_map;

enum { FRONT = 64, ALIGNMENT = 64 }; /* rows lie behind what counts, elements behind all rows */

/* Elements are the block's. */
static void leave_elements(void *arg, void *storage)
{
}

/* Each value bears its part of what the block was charged. */
static void init_value(ort_value *value, ort_kind kind, struct ort_value_block *block,
                       ort_account *account, size_t charged)
{
    memset(value, 0, sizeof *value);
    value->kind = kind;
    value->references = 1;
    value->block = block;
    value->account = ort_account_retain(account);
    value->charged_bytes = charged;
}

static void init_row(row_map *row, struct ort_value_block *block, ort_account *account,
                     ort_value *keys, const ort_tensor *elements)
{
    size_t bytes = ort_tensor_bytes(elements);
    init_value(&row->map, ORT_KIND_MAP, block, account, sizeof *row - sizeof row->values);
    init_value(&row->values, ORT_KIND_TENSOR, block, account, sizeof row->values + bytes);
    row->values.tensor = *elements;
    row->values.storage = block;
    row->values.release = leave_elements;
    row->items[0] = ort_value_retain(keys);
    row->items[1] = &row->values;
    row->map.items = row->items;
    row->map.count = 2;
}

/* Of so many rows, with room for their elements. *charged: what its values bear together. */
static ort_status new_block(size_t rows, size_t row_bytes, ort_account *account,
                            struct ort_value_block **block, ort_error *err)
{
    size_t of_row, charged, total;
    *block = NULL;
    if (!ort_add_size(row_bytes, sizeof(row_map), &of_row) ||
        !ort_mul_size(rows, of_row, &charged) ||
        !ort_add_size(charged, FRONT + ALIGNMENT, &total))
        return ort_error_memory(err, SIZE_MAX);
    if (!ort_account_charge(account, charged))
        return ort_account_refuse(account, charged, "maps", err);
    *block = malloc(total);
    if (!*block) {
        ort_account_refund(account, charged);
        return ort_error_memory(err, total);
    }
    (*block)->references = (int)(2 * rows) + 1; /* whoever fills it has one */
    return ORT_OK;
}

static ort_status append_block(ort_value *sequence, ort_value *keys, const ort_tensor *rows,
                               ort_account *account, ort_error *err)
{
    size_t count = (size_t)rows->shape.dim[0];
    ort_tensor elements = {.dtype = rows->dtype,
                           .shape = ort_shape_make(1, &rows->shape.dim[1])};
    size_t row_bytes = ort_tensor_bytes(&elements);
    struct ort_value_block *block;
    ORT_TRY(ort_value_reserve(sequence, count, err));
    ORT_TRY(new_block(count, row_bytes, account, &block, err));
    row_map *list = (row_map *)((char *)block + FRONT);
    uintptr_t end = (uintptr_t)(list + count);
    char *data = (char *)(list + count) + (ALIGNMENT - end % ALIGNMENT) % ALIGNMENT;
    memcpy(data, rows->data, count * row_bytes);
    for (size_t i = 0; i < count; i++) {
        elements.data = data + i * row_bytes;
        init_row(&list[i], block, account, keys, &elements);
        (void)ort_value_append_take(sequence, &list[i].map, NULL); /* there is room */
    }
    ort_value_block_drop(block);
    return ORT_OK;
}

ort_status ort_value_append_maps(ort_value *sequence, ort_value *keys, const ort_tensor *rows,
                                 ort_error *err)
{
    assert(rows->shape.rank == 2 && !rows->stride && ort_dtype_get(rows->dtype)->bits % 8 == 0);
    assert(keys->tensor.shape.dim[0] == rows->shape.dim[1]);
    if (rows->shape.dim[0] > INT32_MAX / 4)
        return ort_error_memory(err, SIZE_MAX);
    ort_account *account = ort_account_of_work();
    ort_status status = rows->shape.dim[0] ? append_block(sequence, keys, rows, account, err)
                                           : ORT_OK;
    ort_account_release(account);
    return status;
}
