/* spool.h - what can be read only once, as a file that can be read again. */
#ifndef COMMON_SPOOL_H
#define COMMON_SPOOL_H

#include <stdbool.h>

/* Standard input ("-"), a pipe, a device. */
bool spool_is_needed(const char *path);
/* Where to read it: the first call copies all of it into a file under TMPDIR that has no name and
 * goes away with the tool; processes made of this one read it, too. 0 or an exit status. */
int spool_file(const char *path, const char **copy);

#endif
