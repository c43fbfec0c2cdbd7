/* runtime.c - what the runtimes of the benchmark share: messages, dlopen, views.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

#include "runtime.h"

bool runtime_fail(runtime *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->message, sizeof r->message, format, args);
    va_end(args);
    for (char *c = r->message; *c; c++)
        if (*c == '\n')
            *c = ' ';
    return false;
}

bool runtime_symbols(runtime *r, const char *library, const char *const *names, void **functions,
                     size_t count)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return runtime_fail(r, "%s", dlerror());
    for (size_t i = 0; i < count; i++)
        if (!(functions[i] = dlsym(handle, names[i])))
            return runtime_fail(r, "%s: no function %s", library, names[i]);
    return true;
}

bool runtime_view(runtime *r, ort_dtype dtype, size_t rank, const int64_t *dims, void *data,
                  ort_value **value)
{
    ort_error err = {0};
    size_t bits = (size_t)ort_dtype_bits(dtype);
    for (size_t k = 0; k < rank; k++)
        bits *= (size_t)dims[k];
    if (ort_value_new_borrowed(dtype, (int)rank, dims, data, (bits + 7) / 8, value, &err))
        return runtime_fail(r, "%s", err.message);
    return true;
}
