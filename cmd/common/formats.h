/* formats.h - the formats of tensor files as options name them: what --from and --format take, and
 * which options say something of a format that is written. */
#ifndef COMMON_FORMATS_H
#define COMMON_FORMATS_H

#include "common/options.h"

extern const option_words formats_read;
extern const option_words formats_typed; /* of these, those whose bytes say type and shape */
extern const option_words formats_written;

/* A word of --format, or NULL: the names of files say it. */
void formats_choose(const char *word, ort_write_options *options);
/* Has the format of --format, else that of a file of -o, one of these traits? */
bool formats_any(const char *word, const string_list *files, unsigned traits);

#endif
