// Digests of arrays, as `digest.h` has them.

#include "digest.h"

extern "C" {

// of n bytes in rows of so many words
uint64_t assay_mixed(const void* bytes, int64_t n, int64_t words) { return assay::mixed_total(bytes, n, words); }

}  // extern "C"
