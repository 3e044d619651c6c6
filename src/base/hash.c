/* hash.c: content hashes that name cache entries and tie files to what they were made for. */
#include "base/base.h"

/* Odd constants with well mixed bits: the fractions of the square roots of 2, 3 and 5. */
#define ROOT2 UINT64_C(0x6a09e667f3bcc909)
#define ROOT3 UINT64_C(0xbb67ae8584caa73b)
#define ROOT5 UINT64_C(0x3c6ef372fe94f82b)

/* The low and high halves of a 128-bit product, folded: every bit of a product depends on all lower
 * ones, and folding brings the high bits, which depend on most, back down. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t low = al * bl, mid = ah * bl + (low >> 32), mid2 = al * bh + (uint32_t)mid;
    uint64_t high = ah * bh + (mid >> 32) + (mid2 >> 32);
    return high ^ (mid2 << 32 | (uint32_t)low);
}

static uint64_t load(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        v |= (uint64_t)p[i] << 8 * i; /* the same value on every byte order */
    }
    return v;
}

void nori__hash_add(nori__hash *h, const void *data, size_t size)
{
    const unsigned char *p = data;
    uint64_t a = h->a ^ ROOT2 ^ size, b = h->b ^ ROOT3;
    for (; size >= 16; size -= 16, p += 16) {
        uint64_t x = load(p, 8), y = load(p + 8, 8);
        a = fold(a ^ x, ROOT5 ^ y);
        b = fold(b ^ y, ROOT2 ^ x) + a;
    }
    uint64_t x = load(p, size < 8 ? size : 8), y = size > 8 ? load(p + 8, size - 8) : 0;
    h->a = fold(a ^ x, ROOT3 ^ y);
    h->b = fold(b ^ y, ROOT5 ^ x) + h->a;
}

void nori__hash_text(const nori__hash *h, char out[NORI__HASH_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t v[2] = {fold(h->a ^ h->b, ROOT2), fold(h->b, ROOT3 ^ h->a)};
    for (int i = 0; i < 32; i++) {
        out[i] = digits[v[i / 16] >> (60 - i % 16 * 4) & 15];
    }
    out[32] = 0;
}
