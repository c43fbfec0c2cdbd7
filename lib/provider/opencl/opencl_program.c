/* opencl_program.c - programs: built from their texts, or taken from ORT_CACHE, where a binary's
 * name is a digest of the text, the device and its driver. A binary that a driver refuses is built
 * anew; without ORT_CACHE nothing is written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "provider/opencl/opencl.h"

static uint64_t digest_more(uint64_t digest, const char *text)
{
    for (; *text; text++)
        digest = (digest ^ (unsigned char)*text) * 0x100000001b3u;
    return (digest ^ 0xff) * 0x100000001b3u; /* where one text ends and the next begins */
}

static bool cache_path(const ort_cl_device *d, const ort_cl_text *text, char *path, size_t size)
{
    const char *folder = getenv("ORT_CACHE");
    uint64_t digest = digest_more(0xcbf29ce484222325u, ort_cl_texts[0].source);
    if (!folder || !*folder)
        return false;
    digest = digest_more(digest_more(digest, text->source), d->name);
    digest = digest_more(digest_more(digest, d->driver), d->options);
    int length = snprintf(path, size, "%s/opencl-%s-%016llx.bin", folder, text->name,
                          (unsigned long long)digest);
    return length > 0 && (size_t)length < size;
}

static unsigned char *read_file(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rbe");
    unsigned char *bytes = NULL;
    long size = -1;
    if (file && !fseek(file, 0, SEEK_END) && (size = ftell(file)) > 0 && !fseek(file, 0, SEEK_SET))
        bytes = malloc((size_t)size);
    if (bytes && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        free(bytes);
        bytes = NULL;
    }
    if (file)
        fclose(file);
    *count = size > 0 ? (size_t)size : 0;
    return bytes;
}

static cl_program load(ort_cl_device *d, const char *path)
{
    size_t count;
    cl_int code, status = CL_SUCCESS;
    unsigned char *bytes = read_file(path, &count);
    if (!bytes)
        return NULL;
    const unsigned char *binary = bytes;
    cl_program program = d->api.clCreateProgramWithBinary(d->context, 1, &d->id, &count, &binary,
                                                          &status, &code);
    free(bytes);
    if (code == CL_SUCCESS && status == CL_SUCCESS &&
        d->api.clBuildProgram(program, 1, &d->id, d->options, NULL, NULL) == CL_SUCCESS)
        return program;
    if (code == CL_SUCCESS)
        d->api.clReleaseProgram(program);
    return NULL;
}

/* Whole or not at all; a cache that can't be written is no error. */
static void save(ort_cl_device *d, cl_program program, const char *path)
{
    char scratch[1100];
    size_t count = 0;
    if (d->api.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof count, &count, NULL) !=
            CL_SUCCESS || !count)
        return;
    unsigned char *bytes = malloc(count);
    snprintf(scratch, sizeof scratch, "%s.%ld", path, (long)getpid());
    if (bytes && d->api.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes,
                                         NULL) == CL_SUCCESS) {
        FILE *file = fopen(scratch, "wbe");
        bool ok = file && fwrite(bytes, 1, count, file) == count;
        ok = file && fclose(file) == 0 && ok;
        if (file && (!ok || rename(scratch, path)))
            unlink(scratch);
    }
    free(bytes);
}

static ort_status build(ort_cl_device *d, const ort_cl_text *text, cl_program *program,
                        ort_error *err)
{
    char log[1500] = "";
    cl_int code;
    const char *sources[] = {ort_cl_texts[0].source, text->source};
    *program = d->api.clCreateProgramWithSource(d->context, 2, sources, NULL, &code);
    if (code != CL_SUCCESS)
        return ort_cl_fail(code, text->name, err);
    code = d->api.clBuildProgram(*program, 1, &d->id, d->options, NULL, NULL);
    if (code == CL_SUCCESS)
        return ORT_OK;
    d->api.clGetProgramBuildInfo(*program, d->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    d->api.clReleaseProgram(*program);
    *program = NULL;
    return ort_error_set(err, ORT_ERROR_DEVICE, "the driver of %s refuses program '%s': %s",
                         d->name, text->name, log);
}

static ort_status get_program(ort_cl_device *d, int index, cl_program *program, ort_error *err)
{
    char path[1000];
    const ort_cl_text *text = &ort_cl_texts[index];
    ort_status status = ORT_OK;
    pthread_mutex_lock(&d->lock);
    if (!d->programs[index]) {
        bool cached = cache_path(d, text, path, sizeof path);
        d->programs[index] = cached ? load(d, path) : NULL;
        if (!d->programs[index]) {
            status = build(d, text, &d->programs[index], err);
            if (status == ORT_OK && cached)
                save(d, d->programs[index], path);
        }
    }
    *program = d->programs[index];
    pthread_mutex_unlock(&d->lock);
    return status;
}

ort_status ort_cl_kernel(ort_cl_device *device, const char *program, const char *kernel,
                         cl_kernel *object, ort_error *err)
{
    cl_program built = NULL;
    cl_int code;
    int index = 0;
    while (ort_cl_texts[index].name && strcmp(ort_cl_texts[index].name, program))
        index++;
    if (!ort_cl_texts[index].name)
        return ort_error_set(err, ORT_ERROR_DEVICE, "there is no program '%s'", program);
    ORT_TRY(get_program(device, index, &built, err));
    *object = device->api.clCreateKernel(built, kernel, &code);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, kernel, err);
}
