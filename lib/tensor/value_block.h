/* value_block.h - memory in which several values lie: value_maps.c makes it, value.c frees it with
 * the last of them.
 */
#ifndef ORT_TENSOR_VALUE_BLOCK_H
#define ORT_TENSOR_VALUE_BLOCK_H

struct ort_value_block {
    int references; /* of its values; atomic */
};

#endif
