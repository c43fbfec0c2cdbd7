/* own_tier.c - a fault for check_same_bytes.py to find: what looks at samples runs on the tier that
 * the environment names, as if it were the best of another machine.
 */
#include <stdlib.h>

#include "ort.h"

const char *ort_quantize_tier(void)
{
    return getenv("OWN_TIER");
}
