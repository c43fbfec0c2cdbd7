/* format.h - the registry of tensor formats: a file with its row for each, a line in formats.def.
 *
 * All that is said of formats is made of these rows: help, completions, refusals, which format has
 * what another lacks. Readers and writers leave the label of the file to their callers: their
 * messages start with what was wrong. A reader adds values to `tensors`; what it leaves there on
 * failure is thrown away. */
#ifndef ORT_IO_FORMAT_H
#define ORT_IO_FORMAT_H

#include <string.h>

#include "base/json.h"
#include "io/framing.h"
#include "io/input.h"
#include "io/tensors.h"

/* What a caller of ort.h asks for, completed by `own`; NULL: refused, err says why. */
const ort_read_options *ort_read_options_known(const ort_read_options *given, ort_read_options *own,
                                               ort_error *err);

/* Bytes whose format neither they nor a name tell. */
typedef struct ort_format_guess {
    const unsigned char *bytes;
    size_t count;
    bool unnamed; /* there is no ending at all */
    const ort_read_options *options;
} ort_format_guess;

typedef struct ort_format_row {
    ort_format format;   /* as ort.h names it; 0: it doesn't */
    const char *name;    /* what --from calls it, and messages do */
    const char *endings; /* of files, space-separated, the usual one first */
    const char *words;   /* of them, those for --format; NULL: its name */
    unsigned traits;     /* ORT_FORMAT_MANY ... */
    unsigned (*traits_of)(const char *ending); /* more of them, of one ending; or NULL */
    bool (*has_dtype)(ort_dtype dtype); /* NULL: nobody is sent here for an element type */

    bool (*matches)(const unsigned char *bytes, size_t count); /* NULL: content says nothing */
    /* Is it this, by what the caller asks for? NULL: never. */
    ort_status (*claims)(const ort_format_guess *guess, bool *mine, ort_error *err);
    /* Formats that parse as they read take one record from a stream; the others get its bytes. */
    ort_status (*read_record)(ort_input *in, const ort_read_options *options, ort_tensors *tensors,
                              ort_error *err);
    /* Of formats with both: as long as the options say that a record is; 0: they don't. */
    size_t (*record_bytes)(const ort_read_options *options);
    ort_status (*read)(const unsigned char *bytes, size_t count, const ort_read_options *options,
                       ort_tensors *tensors, ort_error *err);
    ort_frame_fn *frame; /* of those: where the bytes of a record end; NULL: with the stream */

    /* Completes what an ending (or a word of --format) says beside the format; refuses one that is
     * read only. "" when there is none. NULL: it says no more. */
    ort_status (*settle)(const char *ending, ort_write_options *options, ort_error *err);
    ort_status (*write)(const ort_tensors *tensors, FILE *stream, const ort_write_options *options,
                        ort_error *err);
} ort_format_row;

/* The row of `format`, NULL for AUTO and unknown numbers. */
const ort_format_row *ort_format_get(ort_format format);
/* By content (up to the first `count` bytes); NULL when it says nothing. */
const ort_format_row *ort_format_detect(const unsigned char *bytes, size_t count);
/* By what the caller asks for; NULL when nobody claims the bytes. */
ort_status ort_format_claimed(const ort_format_guess *guess, const ort_format_row **row,
                              ort_error *err);
/* target.c: the row that writes to `path` (NULL: a stream), and the settings filled in by the
 * name. */
ort_status ort_target_format(const char *path, ort_write_options *settings,
                             const ort_format_row **row, ort_error *err);
/* Extension of a path without its dot, "" when it has none. */
const char *ort_path_extension(const char *path);
/* Is `word` one of `words`, whatever its case? */
bool ort_format_has_word(const char *words, const char *word);

/* The names of all formats, "npy, npz, ..."; what files that are written end in, ".npy, .npz, ...".
 * Both return `text`. */
const char *ort_format_names(char *text, size_t size);
const char *ort_format_endings(char *text, size_t size);

/* The one tensor that a format without room for more can hold; `tensor` NULL: the one value. */
ort_status ort_format_single(const ort_tensors *tensors, const char *format,
                             const ort_tensor **tensor, ort_error *err);
/* "X holds tensors only", and which formats hold more. */
ort_status ort_format_tensors_only(ort_error *err, const char *format);
/* has_dtype of formats that lack none. */
bool ort_format_any_dtype(ort_dtype dtype);
/* "X has no NAME; A, B have it". */
ort_status ort_format_lacks(ort_error *err, const char *format, ort_dtype dtype);

static inline bool ort_starts_with(const unsigned char *bytes, size_t count, const char *magic,
                                   size_t length)
{
    return count >= length && !memcmp(bytes, magic, length);
}

/* ---------------------------------------------------------- what other formats take of .npy -- */

/* One array; dtype names the element type of raw ("V") arrays, or UNDEFINED. */
ort_status ort_npy_read_value(ort_input *in, ort_dtype dtype, ort_value **value, ort_error *err);

/* An array as .npy bytes: a header, then a payload that borrows the tensor's data where it can. */
typedef struct ort_npy_bytes {
    ort_strbuf header;
    const void *payload;
    size_t payload_bytes;
    void *owned; /* the payload when it had to be made */
} ort_npy_bytes;
/* `utf8`: strings as bytes ("S"), else as UTF-32 ("U"). Types without a numpy name are written as
 * unsigned integers of their size, packed ones as a flat array of bytes. */
ort_status ort_npy_encode(const ort_tensor *tensor, bool utf8, ort_npy_bytes *out, ort_error *err);
void ort_npy_release(ort_npy_bytes *bytes);

#endif
