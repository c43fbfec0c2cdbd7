/* framing.h - where a record of a stream ends, for formats whose bytes say so.
 *
 * A framer takes the bytes of one record and leaves the input right behind them. It judges nothing:
 * where the bytes make no sense, or end early, it takes all there are, and the format's reader says
 * what is wrong with them, as it does of a file. */
#ifndef ORT_IO_FRAMING_H
#define ORT_IO_FRAMING_H

#include "io/input.h"

typedef struct ort_frame {
    ort_input *in;
    unsigned char *bytes; /* NULL while count is 0 */
    size_t count, capacity;
    size_t behind;        /* of them: bytes behind the record, which can't be given back */
    bool failed;          /* out of memory */
} ort_frame;

typedef void ort_frame_fn(ort_frame *f);

/* Appends up to `count` bytes of the input; false when there were fewer. */
bool ort_frame_take(ort_frame *f, uint64_t count);
/* Appends all that is left. */
void ort_frame_take_rest(ort_frame *f);

ort_frame_fn ort_frame_json, ort_frame_png, ort_frame_jpeg, ort_frame_riff, ort_frame_bmp,
    ort_frame_pnm, ort_frame_tiff, ort_frame_jp2, ort_frame_j2k;

/* The bytes of one record, which the caller frees; *behind of them lie behind it. */
ort_status ort_frame_read(ort_input *in, ort_frame_fn *fn, unsigned char **bytes, size_t *count,
                          size_t *behind, ort_error *err);
/* Length of the first record of bytes in memory. */
size_t ort_frame_measure(const unsigned char *bytes, size_t count, ort_frame_fn *fn);

#endif
