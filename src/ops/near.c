/* near.c: the known operator that an unknown name most likely stands for. */
#include "ops/support.h"

enum { NAME_MAX_BYTES = 64 };

/* ASCII lower case, so that the result does not hang on the locale. */
static size_t lower(const char *name, char out[NAME_MAX_BYTES])
{
    size_t n = 0;
    for (; name[n] && n + 1 < NAME_MAX_BYTES; n++) {
        char c = name[n];
        out[n] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    out[n] = '\0';
    return n;
}

/* Edits (insert, delete, replace) that make a into b; both shorter than NAME_MAX_BYTES. */
static unsigned edits(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned row[NAME_MAX_BYTES];
    for (size_t j = 0; j <= nb; j++) {
        row[j] = (unsigned)j;
    }
    for (size_t i = 1; i <= na; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            unsigned step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < step ? change : step;
        }
    }
    return row[nb];
}

/* How far a candidate is from a name; UINT32_MAX: not near. Same letters come first, then a
 * longer or shorter form of the same word (RMSNorm), then a slip of one or two letters. */
static unsigned distance(const char *name, size_t n, const char *other, size_t m)
{
    if (n == m && memcmp(name, other, n) == 0) {
        return 0;
    }
    size_t shorter = n < m ? n : m;
    if (shorter >= 4 && memcmp(name, other, shorter) == 0) {
        return 10 + (unsigned)(n < m ? m - n : n - m);
    }
    if (n >= 5 && m >= 5 && (n < m ? m - n : n - m) <= 2) {
        unsigned d = edits(name, n, other, m);
        if (d <= (n >= 8 ? 2u : 1u)) {
            return d;
        }
    }
    return UINT32_MAX;
}

const nori__schema *nori__near_operator(const char *name)
{
    char wanted[NAME_MAX_BYTES], other[NAME_MAX_BYTES];
    size_t n = lower(name, wanted);
    /* Quantizers prefix integer variants with i: iGELU, iLayerNorm. */
    const char *stem = name[0] == 'i' && name[1] >= 'A' && name[1] <= 'Z' ? wanted + 1 : NULL;
    const nori__schema *best = NULL, *s;
    unsigned best_distance = UINT32_MAX;
    for (size_t i = 0; (s = nori__schema_at(i)) != NULL; i++) {
        if (s->runtime) {
            continue; /* a version of ONNX Runtime's own, before the standard's */
        }
        size_t m = lower(s->name, other);
        unsigned d = distance(wanted, n, other, m);
        if (stem) {
            unsigned e = distance(stem, n - 1, other, m);
            d = e < UINT32_MAX && e + 1 < d ? e + 1 : d;
        }
        if (d < best_distance) { /* rows ascend by version: this is the first one */
            best_distance = d;
            best = s;
        }
    }
    return best;
}
