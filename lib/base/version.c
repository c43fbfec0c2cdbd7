/* version.c - the version of the library, as ort.h has it. */
#include "ort.h"

const char *ort_version(void)
{
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
    return TEXT(ORT_VERSION_MAJOR) "." TEXT(ORT_VERSION_MINOR) "." TEXT(ORT_VERSION_PATCH);
}
