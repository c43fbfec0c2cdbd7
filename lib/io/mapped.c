/* mapped.c - private maps: who writes to such a value changes no file. */
#include "io/mapped.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ort.h"

enum { LEAST_BYTES = 4 << 20 }; /* below, reading takes less time than faults do */

/* `arg` is the size of the map. */
static void unmap(void *arg, void *map)
{
    munmap(map, (size_t)(uintptr_t)arg);
}

ort_status ort_mapped_value(ort_input *in, ort_dtype dtype, const ort_shape *shape,
                            ort_value **value, ort_error *err)
{
    ort_tensor tensor = {.dtype = dtype, .shape = *shape};
    const size_t bytes = ort_tensor_bytes(&tensor);
    size_t before = 0;
    *value = NULL;
    char *map = bytes >= LEAST_BYTES ? ort_input_map(in, bytes, &before) : NULL;
    if (!map)
        return ORT_OK;
    tensor.data = map + before;
    if (!ort_tensor_aligned(&tensor) || !ort_input_skip_mapped(in, bytes)) {
        munmap(map, before + bytes);
        return ORT_OK;
    }
    ort_status status = ort_value_new_view(&tensor, value, err);
    if (status != ORT_OK) {
        munmap(map, before + bytes);
        return status;
    }
    (*value)->storage = map;
    (*value)->release = unmap;
    (*value)->release_arg = (void *)(uintptr_t)(before + bytes);
    return ORT_OK;
}

void ort_value_forget(const ort_value *value, size_t begin, size_t count)
{
    if (!value || value->release != unmap)
        return;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t data = (uintptr_t)value->tensor.data, map = (uintptr_t)value->storage;
    uintptr_t first = data + begin, end = first + count;
    const uintptr_t last = map + (uintptr_t)value->release_arg;
    if (end > last || end < first)
        return;
    first -= first % page;
    end -= end % page; /* what follows is read next */
    if (end > first)
        madvise((void *)first, end - first, MADV_DONTNEED);
}
