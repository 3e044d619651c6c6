/* libfuzzer.c: one target, NORI_FUZZ_TARGET, as libFuzzer calls it. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    NORI_FUZZ_TARGET(data, size);
    return 0;
}
