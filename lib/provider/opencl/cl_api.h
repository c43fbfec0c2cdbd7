/* cl_api.h - the functions of libOpenCL, found when the first device is asked for: no other run
 * loads the library. ORT_OPENCL_LIB names another file than the loader of the system.
 */
#ifndef ORT_PROVIDER_OPENCL_CL_API_H
#define ORT_PROVIDER_OPENCL_CL_API_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "ort.h"

#define ORT_CL_FUNCTIONS(X)                                                                        \
    X(clGetPlatformIDs)                                                                            \
    X(clGetPlatformInfo)                                                                           \
    X(clGetDeviceIDs)                                                                              \
    X(clGetDeviceInfo)                                                                             \
    X(clCreateContext)                                                                             \
    X(clRetainContext)                                                                             \
    X(clReleaseContext)                                                                            \
    X(clCreateCommandQueue)                                                                        \
    X(clReleaseCommandQueue)                                                                       \
    X(clCreateBuffer)                                                                              \
    X(clCreateSubBuffer)                                                                           \
    X(clReleaseMemObject)                                                                          \
    X(clCreateProgramWithSource)                                                                   \
    X(clCreateProgramWithBinary)                                                                   \
    X(clBuildProgram)                                                                              \
    X(clGetProgramInfo)                                                                            \
    X(clGetProgramBuildInfo)                                                                       \
    X(clReleaseProgram)                                                                            \
    X(clCreateKernel)                                                                              \
    X(clReleaseKernel)                                                                             \
    X(clSetKernelArg)                                                                              \
    X(clEnqueueNDRangeKernel)                                                                      \
    X(clEnqueueWriteBuffer)                                                                        \
    X(clEnqueueReadBuffer)                                                                         \
    X(clEnqueueCopyBuffer)                                                                         \
    X(clEnqueueMapBuffer)                                                                          \
    X(clEnqueueUnmapMemObject)                                                                     \
    X(clGetEventProfilingInfo)                                                                     \
    X(clReleaseEvent)                                                                              \
    X(clFinish)

typedef struct ort_cl_api {
    void *library;
#define X(name) __typeof__(&name) name;
    ORT_CL_FUNCTIONS(X)
#undef X
} ort_cl_api;

/* ORT_ERROR_DEVICE: no library, or one without a function. */
ort_status ort_cl_api_open(ort_cl_api *api, ort_error *err);
void ort_cl_api_close(ort_cl_api *api);
/* "CL_OUT_OF_RESOURCES (-5)": ORT_ERROR_MEMORY for what says that memory is short, else
 * ORT_ERROR_DEVICE. */
ort_status ort_cl_fail(cl_int code, const char *what, ort_error *err);

#endif
