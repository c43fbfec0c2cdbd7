/* cl_api.c - opening libOpenCL, and what its error codes are called. */
#include "provider/opencl/cl_api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static ort_status find_functions(ort_cl_api *api, const char *name, ort_error *err)
{
    const char *missing = NULL;
#define X(function)                                                                                \
    *(void **)&api->function = dlsym(api->library, #function);                                     \
    if (!api->function)                                                                            \
        missing = #function;
    ORT_CL_FUNCTIONS(X)
#undef X
    if (!missing)
        return ORT_OK;
    ort_cl_api_close(api);
    return ort_error_set(err, ORT_ERROR_DEVICE, "OpenCL: %s has no %s, so it isn't a library of "
                         "OpenCL 1.2", name, missing);
}

ort_status ort_cl_api_open(ort_cl_api *api, ort_error *err)
{
    const char *given = getenv("ORT_OPENCL_LIB");
    const char *name = given && *given ? given : "libOpenCL.so.1";
    memset(api, 0, sizeof *api);
    api->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!api->library && name == given)
        return ort_error_set(err, ORT_ERROR_DEVICE, "OpenCL's library that ORT_OPENCL_LIB names "
                             "can't be opened: %s", dlerror());
    if (!api->library)
        return ort_error_set(err, ORT_ERROR_DEVICE,
                             "OpenCL isn't installed: %s (install its loader, on Debian "
                             "ocl-icd-libopencl1, and a driver)", dlerror());
    return find_functions(api, name, err);
}

/* Drivers leave threads and exit handlers behind that run code of theirs: the library stays. */
void ort_cl_api_close(ort_cl_api *api)
{
    memset(api, 0, sizeof *api);
}

static const char *name_of(cl_int code)
{
    static const struct {
        cl_int code;
        const char *name;
    } names[] = {
#define N(x) {x, #x}
        N(CL_DEVICE_NOT_FOUND), N(CL_DEVICE_NOT_AVAILABLE), N(CL_COMPILER_NOT_AVAILABLE),
        N(CL_MEM_OBJECT_ALLOCATION_FAILURE), N(CL_OUT_OF_RESOURCES), N(CL_OUT_OF_HOST_MEMORY),
        N(CL_BUILD_PROGRAM_FAILURE), N(CL_MISALIGNED_SUB_BUFFER_OFFSET), N(CL_INVALID_VALUE),
        N(CL_INVALID_DEVICE), N(CL_INVALID_CONTEXT), N(CL_INVALID_COMMAND_QUEUE),
        N(CL_INVALID_MEM_OBJECT), N(CL_INVALID_BINARY), N(CL_INVALID_PROGRAM),
        N(CL_INVALID_KERNEL_NAME), N(CL_INVALID_KERNEL), N(CL_INVALID_ARG_INDEX),
        N(CL_INVALID_ARG_VALUE), N(CL_INVALID_ARG_SIZE), N(CL_INVALID_KERNEL_ARGS),
        N(CL_INVALID_WORK_DIMENSION), N(CL_INVALID_WORK_GROUP_SIZE), N(CL_INVALID_WORK_ITEM_SIZE),
        N(CL_INVALID_BUFFER_SIZE), N(CL_INVALID_OPERATION),
#undef N
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code)
            return names[i].name;
    return "OpenCL error";
}

ort_status ort_cl_fail(cl_int code, const char *what, ort_error *err)
{
    bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
    return ort_error_set(err, memory ? ORT_ERROR_MEMORY : ORT_ERROR_DEVICE, "%s: %s (%d)", what,
                         name_of(code), (int)code);
}
