/* einsum.c: Einsum's equation. Labels are letters (upper case before lower case in an implicit
 * output, as ASCII has it); "..." stands for leading dimensions aligned at the right, broadcast.
 * Size 1 broadcasts under any label. */
#include "ops/einsum.h"

static int label_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    return c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1;
}

static nori_status syntax(nori_error *err, const char *equation, const char *what)
{
    return nori__fail(err, NORI_ERROR_MODEL, "equation \"%s\": %s", equation, what);
}

/* One term up to ',' '-' or the end. labels: up to NORI_MAX_RANK; *dots: place of "..." or -1. */
static nori_status read_term(const char *equation, const char **at, int8_t *labels, int *n,
                             int *dots, nori_error *err)
{
    *n = 0;
    *dots = -1;
    for (; **at && **at != ',' && **at != '-'; (*at)++) {
        if (**at == ' ') {
            continue;
        }
        if (**at == '.') {
            if ((*at)[1] != '.' || (*at)[2] != '.' || *dots >= 0) {
                return syntax(err, equation, "a dot that is not one \"...\" of a term");
            }
            *dots = *n;
            *at += 2;
            continue;
        }
        int l = label_of(**at);
        if (l < 0 || *n == NORI_MAX_RANK) {
            return syntax(err, equation, l < 0 ? "a character that is no letter"
                                               : "a term of too many letters");
        }
        labels[(*n)++] = (int8_t)l;
    }
    return NORI_OK;
}

static nori_status join_size(nori__einsum *e, int label, int64_t size, const char *equation,
                             nori_error *err)
{
    int64_t *have = &e->size[label];
    if (!e->used[label] || *have == 1) {
        *have = size;
    } else if (size > 1 || size == 0) {
        if (*have >= 0 && *have != size) {
            return syntax(err, equation, "a letter stands for two different sizes");
        }
        *have = size;
    }
    e->used[label] = true;
    return NORI_OK;
}

/* Ellipsis axes count from the right: the last is the last label. */
static int ellipsis_label(int from_right)
{
    return NORI__EINSUM_LABELS - 1 - from_right;
}

static nori_status add_operand(nori__einsum *e, int i, const int8_t *letters, int n, int dots,
                               int rank, const int64_t *shape, const char *equation, int *widest,
                               nori_error *err)
{
    int extra = rank - n;
    if (extra < 0 || (dots < 0 && extra > 0)) {
        return nori__fail(err, NORI_ERROR_MODEL,
                          "equation \"%s\": term %d has %d letters for rank %d", equation, i, n,
                          rank);
    }
    *widest = dots >= 0 && extra > *widest ? extra : *widest;
    e->rank[i] = rank;
    for (int d = 0, next = 0; d < rank; d++) {
        bool inside = dots >= 0 && d >= dots && d < dots + extra;
        int label = inside ? ellipsis_label(dots + extra - 1 - d) : letters[next++];
        e->label[i][d] = (int8_t)label;
        NORI__TRY(join_size(e, label, shape[d], equation, err));
    }
    return NORI_OK;
}

static nori_status set_output(nori__einsum *e, const int8_t *letters, int n, int dots, int widest,
                              const char *equation, nori_error *err)
{
    int extra = dots >= 0 ? widest : 0;
    if (n + extra > NORI_MAX_RANK) {
        return syntax(err, equation, "an output of too many dimensions");
    }
    e->out_rank = 0;
    for (int k = 0; k <= n; k++) {
        for (int x = extra - 1; k == dots && x >= 0; x--) {
            e->out[e->out_rank++] = (int8_t)ellipsis_label(x);
        }
        if (k < n) {
            if (!e->used[letters[k]]) {
                return syntax(err, equation, "the output has a letter that no operand has");
            }
            for (int j = 0; j < e->out_rank; j++) {
                if (e->out[j] == letters[k]) {
                    return syntax(err, equation, "the output has a letter twice");
                }
            }
            e->out[e->out_rank++] = letters[k];
        }
    }
    return NORI_OK;
}

nori_status nori__einsum_read(const char *equation, int operands, const int *ranks,
                              const int64_t (*shapes)[NORI_MAX_RANK], nori__einsum *e,
                              nori_error *err)
{
    int8_t letters[NORI_MAX_RANK];
    int n, dots, widest = 0, count[NORI__EINSUM_LETTERS] = {0};
    bool any_dots = false;
    memset(e, 0, sizeof *e);
    if (operands < 1 || operands > NORI__EINSUM_OPERANDS) {
        return nori__fail(err, operands < 1 ? NORI_ERROR_MODEL : NORI_ERROR_UNSUPPORTED,
                          "Einsum of %d operands (1 to %d are taken)",
                          operands, NORI__EINSUM_OPERANDS);
    }
    e->operands = operands;
    const char *at = equation;
    for (int i = 0; i < operands; i++) {
        NORI__TRY(read_term(equation, &at, letters, &n, &dots, err));
        NORI__TRY(add_operand(e, i, letters, n, dots, ranks[i], shapes[i], equation, &widest, err));
        any_dots = any_dots || dots >= 0;
        for (int k = 0; k < n; k++) {
            count[letters[k]]++;
        }
        if ((*at == ',') != (i + 1 < operands)) {
            return nori__fail(err, NORI_ERROR_MODEL,
                              "equation \"%s\" does not have one term for each of %d inputs",
                              equation, operands);
        }
        at += *at == ',';
    }
    if (*at == '\0') { /* no "->": letters that appear once, in order */
        n = 0;
        for (int l = 0; l < NORI__EINSUM_LETTERS; l++) {
            if (count[l] == 1 && n < NORI_MAX_RANK) {
                letters[n++] = (int8_t)l;
            } else if (count[l] == 1) {
                return syntax(err, equation, "an output of too many dimensions");
            }
        }
        return set_output(e, letters, n, any_dots ? 0 : -1, widest, equation, err);
    }
    if (at[0] != '-' || at[1] != '>') {
        return syntax(err, equation, "a '-' that is not \"->\"");
    }
    at += 2;
    NORI__TRY(read_term(equation, &at, letters, &n, &dots, err));
    if (*at != '\0') {
        return syntax(err, equation, "more than one output");
    }
    return set_output(e, letters, n, dots, widest, equation, err);
}
