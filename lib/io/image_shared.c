/* image_shared.c - what codecs share: room for pixels of a checked size, libraries opened at first
 * use, and the orientation that EXIF tells. */
#include <assert.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"
#include "io/input.h"

ort_status ort_image_truncated(size_t count, const char *format, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_DATA, "truncated at byte %zu: the %s data is not complete",
                         count, format);
}

ort_status ort_image_alloc(ort_image *image, uint64_t width, uint64_t height, ort_error *err)
{
    if (width == 0 || height == 0 || width > ORT_IMAGE_MOST_PIXELS ||
        height > ORT_IMAGE_MOST_PIXELS / width)
        return ort_error_set(err, ORT_ERROR_DATA, "is %llu x %llu pixels; 1 to %d pixels can be "
                             "read", (unsigned long long)width, (unsigned long long)height,
                             ORT_IMAGE_MOST_PIXELS);
    assert(!image->pixels);
    image->width = (int64_t)width;
    image->height = (int64_t)height;
    image->channels = 3;
    image->pixels = calloc((size_t)(width * height), 3);
    return image->pixels ? ORT_OK : ort_error_memory(err, (size_t)(width * height * 3));
}

ort_status ort_image_library_open(const ort_image_library *library, void **handle, ort_error *err)
{
    *handle = NULL;
#ifdef ORT_IMAGES_LINKED
    return ORT_OK;
#endif
    for (size_t i = 0; library->names[i]; i++) {
        *handle = dlopen(library->names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (*handle)
            return ORT_OK;
    }
    return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "%s needs the library %s, which can't be "
                         "opened; install it (Debian, Ubuntu: %s; Fedora: %s; Alpine: %s)",
                         library->format, library->names[0], library->debian, library->fedora,
                         library->alpine);
}

void *ort_image_symbol(void *handle, const char *name, const char **missing)
{
    void *symbol = dlsym(handle, name);
    if (!symbol)
        *missing = name;
    return symbol;
}

ort_status ort_image_library_check(const ort_image_library *library, const char *missing,
                                   ort_error *err)
{
    return missing ? ort_error_set(err, ORT_ERROR_UNSUPPORTED, "%s lacks %s", library->names[0],
                                   missing)
                   : ORT_OK;
}

/* ------------------------------------------------------------------------- EXIF orientation -- */

size_t ort_tiff_entry(const unsigned char *block, size_t count, unsigned tag)
{
    if (count < 8)
        return 0;
    bool big = block[0] == 'M';
    size_t at = ort_load_word(block + 4, 4, big);
    if (at > count || count - at < 2)
        return 0;
    unsigned entries = ort_load_word(block + at, 2, big);
    at += 2;
    assert(at <= count);
    for (unsigned i = 0; i < entries && count - at >= 12; i++, at += 12)
        if (ort_load_word(block + at, 2, big) == tag)
            return at;
    return 0;
}

int ort_image_orientation(const unsigned char *exif, size_t count)
{
    if (count >= 6 && !memcmp(exif, "Exif\0\0", 6)) {
        exif += 6;
        count -= 6;
    }
    if (count < 8 || (memcmp(exif, "II*\0", 4) && memcmp(exif, "MM\0*", 4)))
        return 0;
    size_t at = ort_tiff_entry(exif, count, 0x0112);
    unsigned value = at ? ort_load_word(exif + at + 8, 2, exif[0] == 'M') : 0;
    return value <= 8 ? (int)value : 0;
}
