/* image.h - RGB pictures between their files and tensors; one file per codec.
 *
 * Libraries are opened at first use: a machine without libjpeg runs everything but JPEG, and a tool
 * that sees no image doesn't pay for them. With ORT_IMAGES_LINKED (make IMAGES=linked) they are
 * linked. */
#ifndef ORT_IO_IMAGE_H
#define ORT_IO_IMAGE_H

#include <stdio.h>

#include "base/error.h"

typedef struct ort_image {
    int64_t width, height;
    int channels;     /* 3 from readers; writers take 1, 3 or 4 */
    int orientation;  /* of EXIF, 1..8; 0: not given */
    uint8_t *pixels;  /* row-major, interleaved; from malloc when read, borrowed when written */
} ort_image;

/* Decode by content; image->pixels is the caller's to free, also after a failure. ORT_ERROR_DATA
 * when the bytes are no image or a damaged one. */
ort_status ort_image_decode(const unsigned char *bytes, size_t count, ort_image *image,
                            ort_error *err);

enum { ORT_IMAGE_MOST_PIXELS = 1 << 29 }; /* of one picture, or of all pages of a file */
/* "truncated at byte N: the FORMAT data is not complete" */
ort_status ort_image_truncated(size_t count, const char *format, ort_error *err);
/* Pixels for checked sizes (three channels, zeroed). */
ort_status ort_image_alloc(ort_image *image, uint64_t width, uint64_t height, ort_error *err);
/* Orientation in a TIFF block ("II*\0..." or "MM\0*..."); 0 when it has none. */
int ort_image_orientation(const unsigned char *exif, size_t count);
/* Where the first directory of a TIFF block has the entry of this tag, 12 bytes long; 0: it has
 * none. */
size_t ort_tiff_entry(const unsigned char *block, size_t count, unsigned tag);

/* A library that is opened at first use. */
typedef struct ort_image_library {
    const char *format;       /* what it reads: "PNG" */
    const char *names[3];     /* to try, in order, ended by NULL: first the soname of the header
                                 that this was compiled with */
    const char *debian, *fedora, *alpine; /* the packages that bring it */
} ort_image_library;

/* Opened and kept; messages name the packages to install. */
ort_status ort_image_library_open(const ort_image_library *library, void **handle, ort_error *err);
/* The symbol, or NULL with *missing set to its name. */
void *ort_image_symbol(void *handle, const char *name, const char **missing);
/* After the last symbol; missing: NULL when all are there. */
ort_status ort_image_library_check(const ort_image_library *library, const char *missing,
                                   ort_error *err);
#define ORT_IMAGE_MEMBER(name) __typeof__(name) *name;
#ifdef ORT_IMAGES_LINKED
#define ORT_IMAGE_FILL(name) lib->name = &(name);
#else
#define ORT_IMAGE_FILL(name)                                                                       \
    lib->name = (__typeof__(name) *)ort_image_symbol(handle, #name, &missing);
#endif
/* The struct `type` of pointers to the functions in the list FUNCTIONS(X), as the library's own
 * header declares them, and open_library, which fills one. Behind them an ort_image_library. */
#define ORT_IMAGE_LIBRARY(type, FUNCTIONS, ...)                                                    \
    typedef struct type {                                                                          \
        FUNCTIONS(ORT_IMAGE_MEMBER)                                                                \
    } type;                                                                                        \
    static ort_status open_library(type *lib, ort_error *err)                                      \
    {                                                                                              \
        static const ort_image_library library = {__VA_ARGS__};                                    \
        void *handle;                                                                              \
        const char *missing = NULL;                                                                \
        ORT_TRY(ort_image_library_open(&library, &handle, err));                                   \
        FUNCTIONS(ORT_IMAGE_FILL)                                                                  \
        return ort_image_library_check(&library, missing, err);                                    \
    }

typedef ort_status ort_image_read_fn(const unsigned char *bytes, size_t count, ort_image *image,
                                     ort_error *err);
typedef ort_status ort_image_write_fn(const ort_image *image, int quality, FILE *stream,
                                      ort_error *err);
ort_image_read_fn ort_png_decode, ort_jpeg_decode, ort_webp_decode, ort_bmp_decode, ort_pnm_decode,
    ort_tiff_decode, ort_jp2_decode;
enum { ORT_TIFF_MOST_PAGES = 4096 };
/* The directory of the page behind the one at *directory, 0: of the first; 0 when there is none.
 * Previews of other pages are passed over. *seen counts both, from 0. */
ort_status ort_tiff_next(const unsigned char *bytes, size_t count, size_t *directory, int *seen,
                         ort_error *err);
/* The page of a directory; 0: the file's first picture. */
ort_status ort_tiff_decode_page(const unsigned char *bytes, size_t count, size_t directory,
                                ort_image *image, ort_error *err);
/* Where the last part of the pages of a TIFF file ends; `count` where one is damaged. */
size_t ort_tiff_extent(const unsigned char *bytes, size_t count);
ort_image_write_fn ort_png_encode, ort_jpeg_encode, ort_webp_encode, ort_bmp_encode, ort_pnm_encode;

#endif
