/* tensor_files.c - the public calls that read and write files of tensors: which format, which label
 * in messages, whole files and records of a stream. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/options.h"
#include "io/format.h"
#include "io/out_file.h"

/* --------------------------------------------------------------------------------- reading -- */

/* What a file that holds no tensors is, in words; NULL when nothing is known. */
static const char *name_stranger(const unsigned char *bytes, size_t count)
{
    static const struct {
        const char *start, *what;
    } strangers[] = {
        {"version https://git-lfs",
         "is a git-lfs pointer, not the file itself; run `git lfs pull`"},
        {"<!DOCTYPE", "is an HTML page, probably an error page of a download"},
        {"<html", "is an HTML page, probably an error page of a download"},
        {"\x1f\x8b", "is compressed with gzip; uncompress it first"},
        {"GIF8", "is a GIF image; convert it to PNG"},
        {"\x80\x02", "is a Python pickle, which is never loaded; save it as .npz or .safetensors"},
        {"%PDF", "is a PDF document"},
        {"ID3", "is an MP3 file; convert it to WAV"},
        {"fLaC", "is a FLAC file; convert it to WAV"},
    };
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        size_t length = strlen(strangers[i].start);
        if (count >= length && !strncasecmp((const char *)bytes, strangers[i].start, length))
            return strangers[i].what;
    }
    return NULL;
}

/* The row of a format that only the file's name can tell, after its content said nothing. */
static ort_status find_by_name(const unsigned char *bytes, size_t count, const char *path,
                               const ort_read_options *options, const ort_format_row **row,
                               ort_error *err)
{
    const char *stranger = name_stranger(bytes, count);
    if (stranger)
        return ort_error_set(err, ORT_ERROR_DATA, "%s", stranger);
    *row = path ? ort_format_get(ort_format_of_path(path)) : NULL;
    bool unnamed = !path || ort_path_extension(path)[0] == '\0';
    const ort_format_guess guess = {bytes, count, unnamed, options};
    if (!*row)
        ORT_TRY(ort_format_claimed(&guess, row, err));
    char names[200];
    if (!*row)
        return ort_error_set(err, ORT_ERROR_DATA, "neither content nor name tell its format; name "
                             "it (%s)", ort_format_names(names, sizeof names));
    return ORT_OK;
}

/* Columns are a table's; most formats say their own element types and shapes. */
static ort_status check_options(const ort_format_row *row, const ort_read_options *options,
                                ort_error *err)
{
    bool chosen = (options->keep && options->keep[0]) || (options->drop && options->drop[0]);
    bool typed = options->dtype != ORT_DTYPE_UNDEFINED;
    char others[100];
    if (chosen && row && !(row->traits & ORT_FORMAT_ROWS))
        return ort_error_set(err, ORT_ERROR_USAGE, "is %s, and columns are passed through or "
                             "dropped of tables (%s) only", row->name,
                             ort_format_list(ORT_FORMAT_ROWS, others, sizeof others));
    if (typed && row && !(row->traits & ORT_FORMAT_TAKES_DTYPE))
        return ort_error_set(err, ORT_ERROR_USAGE, "is %s, which says its own element type; "
                             "--dtype is for %s", row->name,
                             ort_format_list(ORT_FORMAT_TAKES_DTYPE, others, sizeof others));
    if (options->rank != 0 && row && !(row->traits & ORT_FORMAT_TAKES_DIMS))
        return ort_error_set(err, ORT_ERROR_USAGE, "is %s, which says its own shape; --dims is for "
                             "%s", row->name,
                             ort_format_list(ORT_FORMAT_TAKES_DIMS, others, sizeof others));
    return ORT_OK;
}

/* A file holds one record; more are a stream, which is read by another call. */
static ort_status refuse_more(ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_DATA, "more data follows the first record; --stream reads "
                         "every record of a file or of standard input");
}

enum { DETECTED = 12 }; /* bytes that tell every format */

/* Bytes that no reader knows may lie behind an image or a sound, a second one may not, behind
 * filling neither: it would be lost. */
static ort_status check_rest(const ort_format_row *row, const unsigned char *bytes, size_t count,
                             ort_error *err)
{
    if (!row->frame)
        return ORT_OK;
    size_t at = ort_frame_measure(bytes, count, row->frame);
    assert(at <= count);
    for (; at > 0 && at < count; at++) {
        size_t left = count - at < DETECTED ? count - at : DETECTED;
        if (ort_format_detect(bytes + at, left))
            return refuse_more(err);
        if (!strchr("\xff \r\n", bytes[at])) /* nor zero, which ends these */
            break;
    }
    return ORT_OK;
}

/* Bytes whose format is known, or is told by what they are. */
static ort_status read_bytes(const unsigned char *bytes, size_t count, const ort_format_row *row,
                             const char *path, const ort_read_options *options,
                             ort_tensors *tensors, ort_error *err)
{
    if (!row)
        row = ort_format_detect(bytes, count);
    if (!row)
        ORT_TRY(find_by_name(bytes, count, path, options, &row, err));
    ORT_TRY(check_options(row, options, err));
    if (!row->read)
        return ort_error_set(err, ORT_ERROR_DATA, "is no %s file", row->name);
    ORT_TRY(check_rest(row, bytes, count, err));
    return row->read(bytes, count, options, tensors, err);
}

static ort_status read_whole(ort_input *in, const ort_format_row *row, const char *path,
                             const ort_read_options *options, ort_tensors *tensors, ort_error *err)
{
    unsigned char *bytes = NULL;
    size_t count = 0;
    ORT_TRY(ort_input_all(in, &bytes, &count, err));
    ort_status status = read_bytes(bytes, count, row, path, options, tensors, err);
    free(bytes);
    return status;
}

/* The next record of a stream of files that say where they end. */
static ort_status read_framed(ort_input *in, const ort_format_row *row,
                              const ort_read_options *options, ort_tensors *tensors,
                              bool *resumable, ort_error *err)
{
    unsigned char *bytes = NULL;
    size_t count = 0, behind = 0;
    ORT_TRY(ort_frame_read(in, row->frame, &bytes, &count, &behind, err));
    assert(behind <= count);
    ort_status status = ORT_OK;
    if (behind && ort_format_detect(bytes + count - behind, behind))
        status = ort_error_set(err, ORT_ERROR_DATA, "more data follows an image that doesn't say "
                               "where it ends; give its file by itself");
    if (status == ORT_OK)
        status = row->read(bytes, count, options, tensors, err);
    free(bytes);
    *resumable = status != ORT_OK;
    return status;
}

/* Cameras fill up the last block of a file with zeros or ones, editors end a text with empty lines.
 * (One byte of ones may begin a mark of UTF-16, and where raw bytes are due, all are data.) */
static bool is_filler(const ort_input *in, size_t seen, const ort_read_options *options)
{
    const unsigned char *p = in->peeked;
    bool blank = seen < 8;
    for (size_t i = 0; i < seen; i++)
        blank &= p[i] == '\n' || p[i] == '\r' || p[i] == ' ';
    if (options->dtype != ORT_DTYPE_UNDEFINED && options->rank != 0)
        return false;
    return blank || p[0] == 0 || (p[0] == 0xff && (seen == 1 || p[1] == 0xff));
}

/* The format of the next record, by no more bytes than it takes to tell: a short record through a
 * pipe is not kept waiting for the next one. Returns how many are visible, 0 at the end. */
static size_t peek_record(ort_input *in, const ort_read_options *options,
                          const ort_format_row **row)
{
    size_t seen = 0;
    unsigned char skipped;
    for (;;) {
        for (size_t wanted = 4; wanted <= DETECTED; wanted += 4) {
            seen = ort_input_peek(in, wanted);
            *row = ort_format_detect(in->peeked, seen);
            if (*row || seen < wanted)
                break;
        }
        if (*row || seen == 0 || !is_filler(in, seen, options))
            return seen;
        ort_input_read(in, &skipped, 1);
    }
}

/* What a framer looked at behind its record is the next one's. */
static ort_status give_back(ort_input *in, FILE *stream, ort_error *err)
{
    while (in->peeked_count > 0)
        if (ungetc(in->peeked[--in->peeked_count], stream) == EOF)
            return ort_error_set(err, ORT_ERROR_IO, "can't step back in the stream");
    return ORT_OK;
}

/* Does the format itself take what belongs to it from the source? */
static bool takes_record(const ort_format_row *row, bool whole, const ort_read_options *options)
{
    return row && row->read_record &&
           (!row->record_bytes || (!whole && row->record_bytes(options) > 0));
}

static ort_status read_source(ort_input *in, const ort_format_row *row, const char *path,
                              bool whole, const ort_read_options *options, ort_tensors *tensors,
                              bool *resumable, ort_error *err)
{
    bool detect = options->format == ORT_FORMAT_AUTO;
    ORT_TRY(check_options(row, options, err));
    if (takes_record(row, whole, options))
        return row->read_record(in, options, tensors, err);
    if (!whole && row && row->frame)
        return read_framed(in, row, options, tensors, resumable, err);
    return read_whole(in, whole && detect ? NULL : row, path, options, tensors, err);
}

/* One record, or everything, into new tensors. *tensors stays NULL at a clean end. */
static ort_status read_tensors(FILE *stream, const char *path, bool whole,
                               const ort_read_options *options, ort_tensors **tensors,
                               ort_error *err)
{
    ort_input in;
    bool detect = options->format == ORT_FORMAT_AUTO;
    const ort_format_row *row = ort_format_get(options->format);
    if (!row && !detect)
        return ort_error_set(err, ORT_ERROR_USAGE, "there is no format %d", (int)options->format);
    ort_input_init_stream(&in, stream);
    size_t seen = detect && !whole ? peek_record(&in, options, &row)
                                   : ort_input_peek(&in, DETECTED);
    if (seen == 0 && !ferror(stream) && (!whole || !row || takes_record(row, true, options)))
        return ORT_OK;
    if (ferror(stream))
        return ort_error_set(err, ORT_ERROR_IO, "can't read: %s", strerror(errno));
    if (detect && whole)
        row = ort_format_detect(in.peeked, seen);
    ort_tensors *made = NULL;
    ORT_TRY(ort_tensors_new(&made, err));
    bool resumable = false;
    ort_status status = read_source(&in, row, path, whole, options, made, &resumable, err);
    if (status == ORT_OK)
        status = give_back(&in, stream, err);
    else if (resumable)
        resumable = options->resume && give_back(&in, stream, NULL) == ORT_OK;
    if (ferror(stream))
        status = ort_error_set(err, ORT_ERROR_IO, "can't read: %s", strerror(errno));
    if (status != ORT_OK) {
        ort_tensors_free(made);
        if (!resumable || ort_tensors_new(&made, NULL) != ORT_OK)
            return status;
    }
    *tensors = made;
    return status;
}

/* What is wrong with a file of tensors is never the model's fault, nor that of a run. */
static ort_status blame_data(ort_status status)
{
    return status == ORT_ERROR_MODEL || status == ORT_ERROR_UNSUPPORTED || status == ORT_ERROR_RUN
               ? ORT_ERROR_DATA
               : status;
}

const ort_read_options *ort_read_options_known(const ort_read_options *given, ort_read_options *own,
                                               ort_error *err)
{
    const ort_read_options *o = ORT_OPTIONS_KNOWN(given, own, err);
    if (!o)
        return NULL;
    if ((o->rank > 0 && !o->dims) || (o->purpose_count && !o->purposes))
        ort_error_set(err, ORT_ERROR_USAGE, "options to read tensors count sizes or purposes that "
                                            "aren't there");
    else if (o->dtype != ORT_DTYPE_UNDEFINED && !ort_dtype_bits(o->dtype))
        ort_error_set(err, ORT_ERROR_USAGE, "element type %d is unknown", (int)o->dtype);
    else
        return o;
    return NULL;
}

ort_status ort_tensors_read(FILE *stream, const ort_read_options *options, ort_tensors **tensors,
                            ort_error *err)
{
    if (!stream || !tensors)
        return ort_error_null(err, __func__);
    ort_read_options own = ORT_READ_OPTIONS_INIT;
    options = ort_read_options_known(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    *tensors = NULL;
    ort_status status = read_tensors(stream, options->label, false, options, tensors, err);
    return status == ORT_OK ? ORT_OK
                            : ort_error_recast(err, blame_data(status), "%s",
                                               options->label ? options->label : "stream");
}

static ort_status check_end(FILE *stream, ort_error *err)
{
    int next = getc(stream);
    if (next == EOF)
        return ORT_OK;
    ungetc(next, stream);
    return refuse_more(err);
}

static ort_status load(FILE *stream, const char *name, const ort_read_options *options,
                       ort_tensors **tensors, ort_error *err)
{
    ORT_TRY(read_tensors(stream, name, true, options, tensors, err));
    return *tensors ? check_end(stream, err) : ort_error_set(err, ORT_ERROR_DATA, "is empty");
}

ort_status ort_tensors_load(const char *path, const ort_read_options *options,
                            ort_tensors **tensors, ort_error *err)
{
    if (!path || !tensors)
        return ort_error_null(err, __func__);
    ort_read_options own = ORT_READ_OPTIONS_INIT;
    options = ort_read_options_known(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    *tensors = NULL;
    bool is_stdin = !strcmp(path, "-");
    const char *label = options->label ? options->label : is_stdin ? "standard input" : path;
    FILE *stream = is_stdin ? stdin : fopen(path, "rbe");
    if (!stream)
        return ort_error_set(err, ORT_ERROR_IO, "%s: can't open: %s", label, strerror(errno));
    ort_status status = load(stream, is_stdin ? NULL : path, options, tensors, err);
    if (!is_stdin)
        fclose(stream);
    if (status == ORT_OK)
        return ORT_OK;
    ort_tensors_free(*tensors);
    *tensors = NULL;
    return ort_error_recast(err, blame_data(status), "%s", label);
}

/* --------------------------------------------------------------------------------- writing -- */

static ort_status write_tensors(const ort_tensors *tensors, FILE *stream, const char *path,
                                const ort_write_options *options, ort_error *err)
{
    ort_write_options settings = *options;
    const ort_format_row *row;
    ORT_TRY(ort_target_format(path, &settings, &row, err));
    return row->write(tensors, stream, &settings, err);
}

ort_status ort_tensors_write(const ort_tensors *tensors, FILE *stream,
                             const ort_write_options *options, ort_error *err)
{
    if (!tensors || !stream)
        return ort_error_null(err, __func__);
    ort_write_options own = ORT_WRITE_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ort_status status = write_tensors(tensors, stream, NULL, options, err);
    const char *label = stream == stdout ? "standard output" : "stream";
    return status == ORT_OK ? ort_out_file_check(stream, label, err) : status;
}

ort_status ort_tensors_save(const ort_tensors *tensors, const char *path,
                            const ort_write_options *options, ort_error *err)
{
    if (!tensors || !path)
        return ort_error_null(err, __func__);
    ort_write_options own = ORT_WRITE_OPTIONS_INIT;
    bool is_stdout = !strcmp(path, "-");
    ort_out_file *file = NULL;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ORT_TRY(ort_out_file_open(path, &file, err));
    ort_status status = write_tensors(tensors, file->stream, is_stdout ? NULL : path, options, err);
    if (status == ORT_OK)
        return ort_out_file_commit(file, false, err);
    ort_out_file_abort(file);
    return ort_error_wrap(err, status, "%s", is_stdout ? "standard output" : path);
}
