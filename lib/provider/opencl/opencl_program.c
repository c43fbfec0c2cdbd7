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

static int find_text(const char *name)
{
    int index = 0;
    while (ort_cl_texts[index].name && strcmp(ort_cl_texts[index].name, name))
        index++;
    return index;
}

/* The text in front of which another stands, "NAME_MORE": NAME. NULL: none. */
static const ort_cl_text *text_behind(const ort_cl_text *text)
{
    const char *more = strchr(text->name, '_');
    for (int i = 0; more && ort_cl_texts[i].name; i++)
        if (strlen(ort_cl_texts[i].name) == (size_t)(more - text->name) &&
            !strncmp(ort_cl_texts[i].name, text->name, (size_t)(more - text->name)))
            return &ort_cl_texts[i];
    return NULL;
}

enum { MOST_SOURCES = 3 };

typedef struct wanted {
    const ort_cl_text *text;
    bool generated;      /* by a plan */
    const char *options; /* of the compiler */
} wanted;

/* What the program is built of: the common text first; functions of elements before those that
 * plans write. */
static cl_uint sources_of(const wanted *w, const char **list)
{
    cl_uint count = 0;
    list[count++] = ort_cl_texts[0].source;
    if (w->generated)
        list[count++] = ort_cl_texts[find_text("each")].source;
    list[count++] = w->text->source;
    const ort_cl_text *behind = w->generated ? NULL : text_behind(w->text);
    if (behind)
        list[count++] = behind->source;
    return count;
}

uint64_t ort_cl_texts_digest(void)
{
    uint64_t digest = 0xcbf29ce484222325u;
    for (int i = 0; ort_cl_texts[i].name; i++)
        digest = digest_more(digest_more(digest, ort_cl_texts[i].name), ort_cl_texts[i].source);
    return digest;
}

static bool cache_path(const ort_cl_device *d, const wanted *w, char *path, size_t size)
{
    const char *folder = getenv("ORT_CACHE"), *sources[MOST_SOURCES];
    uint64_t digest = 0xcbf29ce484222325u;
    if (!folder || !*folder)
        return false;
    cl_uint count = sources_of(w, sources);
    for (cl_uint i = 0; i < count; i++)
        digest = digest_more(digest, sources[i]);
    digest = digest_more(digest, d->name);
    digest = digest_more(digest_more(digest, d->driver), w->options);
    int length = snprintf(path, size, "%s/opencl-%s-%016llx.bin", folder, w->text->name,
                          (unsigned long long)digest);
    return length > 0 && (size_t)length < size;
}

unsigned char *ort_cl_read_file(const char *path, size_t *count)
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

static cl_program load(ort_cl_device *d, const wanted *w, const char *path)
{
    size_t count;
    cl_int code, status = CL_SUCCESS;
    unsigned char *bytes = ort_cl_read_file(path, &count);
    if (!bytes)
        return NULL;
    const unsigned char *binary = bytes;
    cl_program program = d->api.clCreateProgramWithBinary(d->context, 1, &d->id, &count, &binary,
                                                          &status, &code);
    free(bytes);
    if (code == CL_SUCCESS && status == CL_SUCCESS &&
        d->api.clBuildProgram(program, 1, &d->id, w->options, NULL, NULL) == CL_SUCCESS)
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

static ort_status build(ort_cl_device *d, const wanted *w, cl_program *program, ort_error *err)
{
    char log[1500] = "";
    cl_int code;
    const char *sources[MOST_SOURCES];
    cl_uint count = sources_of(w, sources);
    *program = d->api.clCreateProgramWithSource(d->context, count, sources, NULL, &code);
    if (code != CL_SUCCESS)
        return ort_cl_fail(code, w->text->name, err);
    code = d->api.clBuildProgram(*program, 1, &d->id, w->options, NULL, NULL);
    if (code == CL_SUCCESS)
        return ORT_OK;
    d->api.clGetProgramBuildInfo(*program, d->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    d->api.clReleaseProgram(*program);
    *program = NULL;
    return ort_error_set(err, ORT_ERROR_DEVICE, "the driver of %s refuses program '%s': %s",
                         d->name, w->text->name, log);
}

static ort_status get_program(ort_cl_device *d, const wanted *w, cl_program *kept,
                              cl_program *program, ort_error *err)
{
    char path[1000];
    ort_status status = ORT_OK;
    pthread_mutex_lock(&d->lock);
    if (!*kept) {
        bool cached = cache_path(d, w, path, sizeof path);
        *kept = cached ? load(d, w, path) : NULL;
        if (!*kept) {
            status = build(d, w, kept, err);
            if (status == ORT_OK && cached)
                save(d, *kept, path);
        }
    }
    *program = *kept;
    pthread_mutex_unlock(&d->lock);
    return status;
}

static ort_status make_kernel(ort_cl_device *d, cl_program program, const char *name,
                              cl_kernel *object, ort_error *err)
{
    cl_int code;
    *object = d->api.clCreateKernel(program, name, &code);
    return code == CL_SUCCESS ? ORT_OK : ort_cl_fail(code, name, err);
}

ort_status ort_cl_kernel(ort_cl_device *device, int tiles, const char *program, bool half,
                         const char *kernel, cl_kernel *object, ort_error *err)
{
    cl_program built = NULL;
    int index = find_text(program);
    ort_cl_tile *form = &device->tiles[tiles];
    const wanted w = {&ort_cl_texts[index], false, form->options[half]};
    if (!ort_cl_texts[index].name)
        return ort_error_set(err, ORT_ERROR_DEVICE, "there is no program '%s'", program);
    ORT_TRY(get_program(device, &w, &form->programs[half][index], &built, err));
    return make_kernel(device, built, kernel, object, err);
}

ort_status ort_cl_generated_kernel(ort_cl_device *device, ort_cl_program *program,
                                   const char *kernel, cl_kernel *object, ort_error *err)
{
    cl_program built = NULL;
    const wanted w = {&program->text, true, device->tiles[device->own].options[0]};
    ORT_TRY(get_program(device, &w, &program->built, &built, err));
    return make_kernel(device, built, kernel, object, err);
}

/* ---- those that plans write */

static ort_cl_program *find_generated(const ort_cl_device *d, const char *source)
{
    for (size_t i = 0; i < d->generated.count; i++)
        if (!strcmp(d->generated.data[i]->text.source, source))
            return d->generated.data[i];
    return NULL;
}

static ort_cl_program *add_generated(ort_cl_device *d, const char *source)
{
    size_t bytes = strlen(source) + 1;
    ort_cl_program *p = calloc(1, sizeof *p + bytes);
    if (!p)
        return NULL;
    p->text = (ort_cl_text){"chains", memcpy(p + 1, source, bytes)};
    if (ort_vec_push(&d->generated, p))
        return p;
    free(p);
    return NULL;
}

ort_status ort_cl_generated(ort_cl_device *d, const char *source, ort_cl_program **program,
                            ort_error *err)
{
    pthread_mutex_lock(&d->lock);
    *program = find_generated(d, source);
    if (!*program)
        *program = add_generated(d, source);
    pthread_mutex_unlock(&d->lock);
    return *program ? ORT_OK : ort_error_memory(err, strlen(source));
}

void ort_cl_programs_release(ort_cl_device *d)
{
    for (int i = 0; i < ORT_CL_TILES * 2 * ORT_CL_PROGRAMS; i++) {
        ort_cl_tile *t = &d->tiles[i / ORT_CL_PROGRAMS / 2];
        cl_program program = t->programs[i / ORT_CL_PROGRAMS % 2][i % ORT_CL_PROGRAMS];
        if (program)
            d->api.clReleaseProgram(program);
    }
    for (size_t i = 0; i < d->generated.count; i++) {
        if (d->generated.data[i]->built)
            d->api.clReleaseProgram(d->generated.data[i]->built);
        free(d->generated.data[i]);
    }
    ort_vec_release(&d->generated);
}
