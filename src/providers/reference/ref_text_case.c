/* ref_text_case.c: simple case mappings of Unicode, by ranges, so that results depend on no locale
 * that may or may not be installed. */
#include "providers/reference/ref_text.h"

/* Capitals first..last; their small letters are `by` further on. step 2: capital and small letter
 * alternate, capitals being first, first + 2 ... (by is 1). */
typedef struct range {
    uint32_t first, last;
    uint16_t by, step;
} range;

static const range ranges[] = {
    {0x41, 0x5a, 32, 1},       {0xc0, 0xd6, 32, 1},       {0xd8, 0xde, 32, 1},
    {0x100, 0x12e, 1, 2},      {0x132, 0x136, 1, 2},      {0x139, 0x147, 1, 2},
    {0x14a, 0x176, 1, 2},      {0x179, 0x17d, 1, 2},      {0x1cd, 0x1db, 1, 2},
    {0x1de, 0x1ee, 1, 2},      {0x1f8, 0x21e, 1, 2},      {0x222, 0x232, 1, 2},
    {0x386, 0x386, 38, 1},     {0x388, 0x38a, 37, 1},     {0x38c, 0x38c, 64, 1},
    {0x38e, 0x38f, 63, 1},     {0x391, 0x3a1, 32, 1},     {0x3a3, 0x3ab, 32, 1},
    {0x400, 0x40f, 80, 1},     {0x410, 0x42f, 32, 1},     {0x460, 0x480, 1, 2},
    {0x48a, 0x4be, 1, 2},      {0x4c1, 0x4cd, 1, 2},      {0x4d0, 0x52e, 1, 2},
    {0x531, 0x556, 48, 1},     {0x1e00, 0x1e94, 1, 2},    {0x1ea0, 0x1efe, 1, 2},
    {0x2160, 0x216f, 16, 1},   {0x24b6, 0x24cf, 26, 1},   {0xff21, 0xff3a, 32, 1},
};

static uint32_t map(uint32_t c, nori__case to)
{
    if (c == 0x178 && to == NORI__CASE_LOWER) { /* y with two dots lies apart */
        return 0xff;
    }
    if (c == 0xff && to == NORI__CASE_UPPER) {
        return 0x178;
    }
    if (c == 0x3c2 && to == NORI__CASE_UPPER) { /* sigma at the end of a word */
        return 0x3a3;
    }
    for (size_t i = 0; i < NORI__COUNT(ranges); i++) {
        const range *r = &ranges[i];
        uint32_t first = to == NORI__CASE_UPPER ? r->first + r->by : r->first;
        uint32_t last = to == NORI__CASE_UPPER ? r->last + r->by : r->last;
        if (c >= first && c <= last && (c - first) % r->step == 0) {
            return to == NORI__CASE_UPPER ? c - r->by : c + r->by;
        }
    }
    return c;
}

/* Bytes of the character at p, its code in *code; 0 when they are no UTF-8. */
static size_t decode(const unsigned char *p, size_t n, uint32_t *code)
{
    size_t size = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (size == 0 || size > n || p[0] > 0xf4) {
        return 0;
    }
    *code = size == 1 ? p[0] : p[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
        *code = *code << 6 | (p[i] & 0x3fu);
    }
    return size;
}

static void add(nori__text *out, uint32_t c)
{
    char bytes[4];
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; c >>= 6) {
        bytes[i] = (char)(0x80 | (c & 0x3f));
    }
    bytes[0] = (char)(size == 1 ? c : (0xf00u >> size & 0xf0u) | c);
    nori__text_add(out, bytes, size);
}

void nori__text_case(nori__text *out, const char *p, size_t n, nori__case to)
{
    out->size = 0;
    if (to == NORI__CASE_NONE) {
        nori__text_add(out, p, n);
        return;
    }
    while (n > 0) {
        uint32_t code = 0, mapped;
        size_t size = decode((const unsigned char *)p, n, &code);
        if (size == 0) {
            nori__text_add(out, p, 1);
            size = 1;
        } else if ((mapped = map(code, to)) == code) {
            nori__text_add(out, p, size);
        } else {
            add(out, mapped);
        }
        p += size;
        n -= size;
    }
}
