/* clblast.c - what CLBlast's untuned default takes for a product of N x N: the least of several
 * runs of a few products behind each other, in milliseconds each. usage: clblast N...
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <clblast_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PRODUCTS = 4, ROUNDS = 5 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double measure(cl_context context, cl_command_queue queue, size_t n)
{
    cl_mem m[3];
    cl_int code = CL_SUCCESS;
    float *zeros = calloc(n * n, sizeof *zeros);
    double least = 1e9;
    for (int i = 0; i < 3; i++)
        m[i] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, n * n * 4, zeros, &code);
    for (int round = 0; round < ROUNDS && code == CL_SUCCESS; round++) {
        double begin = now_ms();
        for (int i = 0; i < PRODUCTS; i++)
            code |= CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, n,
                                 n, n, 1, m[0], 0, n, m[1], 0, n, 0, m[2], 0, n, &queue, NULL);
        clFinish(queue);
        double each = (now_ms() - begin) / PRODUCTS;
        least = each < least ? each : least;
    }
    for (int i = 0; i < 3; i++)
        clReleaseMemObject(m[i]);
    free(zeros);
    return code == CL_SUCCESS ? least : -1;
}

int main(int argc, char **argv)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int code;
    if (clGetPlatformIDs(1, &platform, NULL) ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 1;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    for (int i = 1; i < argc; i++)
        printf("%s %.4f\n", argv[i], measure(context, queue, (size_t)atol(argv[i])));
    return 0;
}
