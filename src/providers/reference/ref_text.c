/* ref_text.c: StringConcat, StringSplit, StringNormalizer.
 *
 * Strings are bytes, meant to be UTF-8; bytes that are not pass through unchanged. Empty tensors give
 * empty results, but for StringNormalizer, whose result has at least one (empty) element. */
#include "ops/families.h"
#include "providers/reference/ref.h"
#include "providers/reference/ref_text.h"

static nori_status need_strings(const nori_call *call, uint32_t i)
{
    NORI__TRY(nori__ref_need(call, i));
    return call->in[i]->type == NORI_STRING ? NORI_OK : nori__ref_bad_type(call, i);
}

nori_status nori__ref_StringConcat(nori_call *call)
{
    NORI__TRY(need_strings(call, 0));
    NORI__TRY(need_strings(call, 1));
    nori__ref_walk w;
    NORI__TRY(nori__ref_walk_start(call, &w, call->out[0], call->in, 2));
    nori__text text;
    nori__text_init(&text, call->allocator);
    nori_status status = NORI_OK;
    while (status == NORI_OK && nori__ref_walk_next(&w)) {
        const nori__ref_line *l = &w.line;
        const nori_string *a = NORI__LINE_IN(l, 0, nori_string);
        const nori_string *b = NORI__LINE_IN(l, 1, nori_string);
        for (int64_t i = 0; i < l->n && status == NORI_OK; i++) {
            text.size = 0;
            nori__text_add(&text, a[i * l->step[0]].data, a[i * l->step[0]].size);
            nori__text_add(&text, b[i * l->step[1]].data, b[i * l->step[1]].size);
            status = text.failed ? nori__no_memory(call->err)
                                 : nori__tensor_set_string(call->out[0], l->out + i, text.data,
                                                           text.size, call->err);
        }
    }
    nori__text_free(&text);
    return status;
}

/* ---- StringSplit ---- */

typedef struct splitter {
    const char *delimiter; /* "": runs of blanks */
    size_t size;
    int64_t most; /* splits at most; -1: any number */
} splitter;

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Where the delimiter next is, or NULL. */
static const char *find(const splitter *s, const char *p, const char *end)
{
    for (; (size_t)(end - p) >= s->size; p++) {
        if (memcmp(p, s->delimiter, s->size) == 0) {
            return p;
        }
    }
    return NULL;
}

/* Takes the next piece off [*p, end); false when there is none. done counts pieces so far. */
static bool next_piece(const splitter *s, const char **p, const char *end, int64_t done,
                       nori__str *piece)
{
    bool rest = s->most >= 0 && done >= s->most;
    if (!*p) {
        return false;
    }
    if (s->size == 0) {
        while (*p < end && is_blank(**p)) {
            (*p)++;
        }
        const char *stop = rest ? end : *p;
        while (stop < end && !is_blank(*stop)) {
            stop++;
        }
        *piece = (nori__str){*p, (size_t)(stop - *p)};
        *p = stop;
        return piece->n > 0;
    }
    const char *stop = rest ? NULL : find(s, *p, end);
    *piece = (nori__str){*p, (size_t)((stop ? stop : end) - *p)};
    *p = stop ? stop + s->size : NULL; /* without a delimiter this was the last one */
    return true;
}

static int64_t count_pieces(const splitter *s, const nori_string *text)
{
    const char *p = text->data ? text->data : "", *end = p + text->size;
    int64_t n = 0;
    nori__str piece;
    while (next_piece(s, &p, end, n, &piece)) {
        n++;
    }
    return n;
}

nori_status nori__ref_StringSplit(nori_call *call)
{
    NORI__TRY(need_strings(call, 0));
    const nori_tensor *in = call->in[0];
    const nori_string *x = in->data;
    splitter s = {.delimiter = nori__attr_s(call->node, "delimiter", ""),
                  .most = nori__attr_i(call->node, "maxsplit", -1)};
    s.size = strlen(s.delimiter);
    int64_t dims[NORI_MAX_RANK + 1], most = 0;
    if (in->rank + 1 > NORI_MAX_RANK) {
        return nori__fail(call->err, NORI_ERROR_LIMIT, "StringSplit would give rank %d",
                          in->rank + 1);
    }
    for (int64_t i = 0; i < in->count; i++) {
        int64_t n = count_pieces(&s, &x[i]);
        most = n > most ? n : most;
    }
    memcpy(dims, in->dims, (size_t)in->rank * sizeof(dims[0]));
    dims[in->rank] = most;
    nori_tensor *pieces = NULL, *counts = NULL;
    NORI__TRY(call->exec->alloc(call, 0, NORI_STRING, in->rank + 1, dims, &pieces));
    if (call->n_out > 1) {
        NORI__TRY(call->exec->alloc(call, 1, NORI_INT64, in->rank, in->dims, &counts));
    }
    for (int64_t i = 0; i < in->count; i++) {
        const char *p = x[i].data ? x[i].data : "", *end = p + x[i].size;
        int64_t n = 0;
        nori__str piece;
        while (next_piece(&s, &p, end, n, &piece)) {
            NORI__TRY(nori__tensor_set_string(pieces, i * most + n++, piece.p, piece.n,
                                              call->err));
        }
        if (counts) {
            ((int64_t *)counts->data)[i] = n;
        }
        for (; n < most; n++) {
            NORI__TRY(nori__tensor_set_string(pieces, i * most + n, "", 0, call->err));
        }
    }
    return NORI_OK;
}

/* ---- StringNormalizer ---- */

typedef struct normalizer {
    const nori__str *stop; /* as given */
    size_t stops;
    bool exact;            /* stop words by case */
    nori__case action;
    nori__text a, b;       /* scratch */
} normalizer;

static bool same_text(const nori__text *x, const char *p, size_t n)
{
    return x->size == n && (n == 0 || memcmp(x->data, p, n) == 0);
}

static bool is_stop(normalizer *m, const nori_string *s)
{
    for (size_t i = 0; i < m->stops; i++) {
        if (m->exact) {
            m->a.size = 0;
            nori__text_add(&m->a, s->data, s->size);
        } else {
            nori__text_case(&m->a, s->data, s->size, NORI__CASE_LOWER);
        }
        nori__text_case(&m->b, m->stop[i].p, m->stop[i].n,
                        m->exact ? NORI__CASE_NONE : NORI__CASE_LOWER);
        if (same_text(&m->a, m->b.data, m->b.size)) {
            return true;
        }
    }
    return false;
}

static nori_status normalize(nori_call *call, normalizer *m)
{
    const nori_tensor *in = call->in[0];
    const nori_string *x = in->data;
    int64_t kept = 0, dims[2];
    for (int64_t i = 0; i < in->count; i++) {
        kept += !is_stop(m, &x[i]);
    }
    if (m->a.failed || m->b.failed) {
        return nori__no_memory(call->err);
    }
    dims[0] = 1;
    dims[in->rank - 1] = kept > 0 ? kept : 1;
    nori_tensor *out = NULL;
    NORI__TRY(call->exec->alloc(call, 0, NORI_STRING, in->rank, dims, &out));
    if (kept == 0) {
        return nori__tensor_set_string(out, 0, "", 0, call->err);
    }
    int64_t at = 0;
    for (int64_t i = 0; i < in->count && !m->a.failed && !m->b.failed; i++) {
        if (is_stop(m, &x[i])) {
            continue;
        }
        nori__text_case(&m->a, x[i].data, x[i].size, m->action);
        if (m->a.failed || at >= kept) {
            break;
        }
        NORI__TRY(nori__tensor_set_string(out, at++, m->a.data, m->a.size, call->err));
    }
    return m->a.failed || m->b.failed ? nori__no_memory(call->err) : NORI_OK;
}

/* Case by Unicode's simple mappings whatever the locale attribute says: results do not depend on
 * what is installed where. */
nori_status nori__ref_StringNormalizer(nori_call *call)
{
    NORI__TRY(need_strings(call, 0));
    const nori_tensor *in = call->in[0];
    if (in->rank < 1 || in->rank > 2 || (in->rank == 2 && in->dims[0] != 1)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input 0 of StringNormalizer must have shape [C] or [1, C]");
    }
    const nori__attr *stop = nori__attr_find(call->node, "stopwords");
    const char *action = nori__attr_s(call->node, "case_change_action", "NONE");
    normalizer m = {.exact = nori__attr_i(call->node, "is_case_sensitive", 0) != 0,
                    .action = nori__same(action, "LOWER")   ? NORI__CASE_LOWER
                              : nori__same(action, "UPPER") ? NORI__CASE_UPPER
                                                            : NORI__CASE_NONE};
    if (stop && stop->kind == NORI__ATTR_STRINGS) {
        m.stop = stop->v.strings;
        m.stops = stop->count;
    }
    nori__text_init(&m.a, call->allocator);
    nori__text_init(&m.b, call->allocator);
    nori_status status = normalize(call, &m);
    nori__text_free(&m.a);
    nori__text_free(&m.b);
    return status;
}
