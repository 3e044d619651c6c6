/* ref_tfidf.c: TfIdfVectorizer: counts n-grams of a pool in each row.
 *
 * The pool becomes a map from an n-gram's text to its number, so a row costs its own n-grams,
 * whatever the pool's size. Integers are compared as 64-bit numbers, strings byte by byte. Skips
 * apply to n-grams of two items and more; single items count once. */
#include "ops/families.h"
#include "providers/reference/ref.h"

typedef struct vectorizer {
    const int64_t *counts, *indexes, *ints; /* ngram_counts, ngram_indexes, pool_int64s */
    size_t n_counts, n_indexes, n_pool;
    const nori__str *strings;               /* pool_strings; NULL: integers */
    const float *weights;                   /* NULL: ones */
    int64_t shortest, longest, skips;
    char mode;                              /* T: TF, I: IDF, X: TFIDF */
    nori__arena arena;                      /* keys */
    nori__map map;                          /* key to &indexes[number of the n-gram] */
    nori__text key;
} vectorizer;

/* Items end in a byte 3; bytes up to 3 inside strings are written as two, since keys of the map
 * end at a byte 0 and no two lists of items may have one key. */
static void add_item(nori__text *key, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)p[i] < 4) {
            nori__text_add(key, "\1", 1);
            char code = (char)(p[i] + 4);
            nori__text_add(key, &code, 1);
        } else {
            nori__text_add(key, &p[i], 1);
        }
    }
    nori__text_add(key, "\3", 1);
}

static nori_status fail(const nori_call *call, const char *what)
{
    return nori__fail(call->err, NORI_ERROR_DATA, "TfIdfVectorizer: %s", what);
}

/* Puts the n-grams of one length, pool items [begin, end), into the map. */
static nori_status add_grams(nori_call *call, vectorizer *v, int64_t length, int64_t begin,
                             int64_t end, size_t *number)
{
    if (begin < 0 || end < begin || end > (int64_t)v->n_pool || (end - begin) % length != 0) {
        return fail(call, "ngram_counts does not fit the pool");
    }
    for (int64_t at = begin; at < end; at += length) {
        if (*number >= v->n_indexes) {
            return fail(call, "ngram_indexes is shorter than the pool");
        }
        v->key.size = 0;
        for (int64_t i = at; i < at + length; i++) {
            if (v->strings) {
                add_item(&v->key, v->strings[i].p, v->strings[i].n);
            } else {
                nori__text_printf(&v->key, "%lld,", (long long)v->ints[i]);
            }
        }
        char *key = v->key.failed ? NULL : nori__arena_copy(&v->arena, v->key.data, v->key.size);
        if (!key || !nori__map_put(&v->map, key, (void *)(uintptr_t)&v->indexes[*number])) {
            return nori__no_memory(call->err);
        }
        (*number)++;
    }
    return NORI_OK;
}

static nori_status open_pool(nori_call *call, vectorizer *v)
{
    size_t number = 0;
    for (size_t i = 0; i < v->n_counts; i++) {
        int64_t end = i + 1 < v->n_counts ? v->counts[i + 1] : (int64_t)v->n_pool;
        NORI__TRY(add_grams(call, v, (int64_t)i + 1, v->counts[i], end, &number));
    }
    return NORI_OK;
}

/* Looks up the n-gram of `length` items from `at` on, `step` apart, and counts it. */
static void count_gram(vectorizer *v, const nori_tensor *in, int64_t at, int64_t length,
                       int64_t step, float *out, int64_t width)
{
    v->key.size = 0;
    for (int64_t i = 0; i < length; i++, at += step) {
        if (v->strings) {
            const nori_string *s = (const nori_string *)in->data + at;
            add_item(&v->key, s->data, s->size);
        } else {
            nori__text_printf(&v->key, "%lld,", (long long)nori__tensor_get_i64(in, at));
        }
    }
    const int64_t *index =
        v->key.failed ? NULL : nori__map_get_n(&v->map, v->key.data, v->key.size);
    if (index && *index >= 0 && *index < width) {
        out[*index] += 1;
    }
}

static void count_row(vectorizer *v, const nori_tensor *in, int64_t first, int64_t items,
                      float *out, int64_t width)
{
    for (int64_t length = v->shortest; length <= v->longest; length++) {
        for (int64_t step = 1; step <= (length == 1 ? 1 : v->skips + 1); step++) {
            if (length > 1 && step > (items - 1) / (length - 1)) {
                break; /* longer steps do not fit either */
            }
            for (int64_t at = 0; at + (length - 1) * step < items; at++) {
                count_gram(v, in, first + at, length, step, out, width);
            }
        }
    }
}

/* IDF: weight where there was any; TFIDF: count times weight. */
static void weigh_row(const vectorizer *v, float *out, int64_t width)
{
    for (int64_t i = 0; v->mode == 'I' && i < width; i++) {
        out[i] = out[i] > 0 ? 1 : 0;
    }
    for (size_t i = 0; v->mode != 'T' && v->weights && i < v->n_indexes; i++) {
        if (v->indexes[i] >= 0 && v->indexes[i] < width) {
            out[v->indexes[i]] *= v->weights[i];
        }
    }
}

static nori_status read_attributes(nori_call *call, vectorizer *v)
{
    size_t n_weights;
    const nori__attr *strings = nori__attr_find(call->node, "pool_strings");
    v->counts = nori__attr_ints(call->node, "ngram_counts", &v->n_counts);
    v->indexes = nori__attr_ints(call->node, "ngram_indexes", &v->n_indexes);
    v->ints = nori__attr_ints(call->node, "pool_int64s", &v->n_pool);
    v->weights = nori__attr_floats(call->node, "weights", &n_weights);
    if (strings && strings->kind == NORI__ATTR_STRINGS) {
        v->strings = strings->v.strings;
        v->n_pool = strings->count;
    }
    v->shortest = nori__attr_i(call->node, "min_gram_length", 1);
    v->longest = nori__attr_i(call->node, "max_gram_length", 1);
    v->skips = nori__attr_i(call->node, "max_skip_count", 0);
    const char *mode = nori__attr_s(call->node, "mode", "");
    v->mode = nori__same(mode, "TF") ? 'T' : nori__same(mode, "IDF") ? 'I'
              : nori__same(mode, "TFIDF") ? 'X' : 0;
    if (!v->mode) {
        return fail(call, "attribute mode must be TF, IDF or TFIDF");
    }
    if (v->shortest < 1 || v->longest < v->shortest || v->longest > (int64_t)v->n_counts ||
        v->skips < 0) {
        return fail(call, "gram lengths must be from 1 to the length of ngram_counts, skips not "
                    "negative");
    }
    if (v->weights && n_weights != v->n_indexes) {
        return fail(call, "weights must be as long as ngram_indexes");
    }
    if (v->strings ? call->in[0]->type != NORI_STRING
                   : call->in[0]->type != NORI_INT32 && call->in[0]->type != NORI_INT64) {
        return nori__ref_bad_type(call, 0);
    }
    return NORI_OK;
}

nori_status nori__ref_TfIdfVectorizer(nori_call *call)
{
    vectorizer v = {0};
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(read_attributes(call, &v));
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    if (in->rank < 1 || in->rank > 2 || out->rank != in->rank) {
        return fail(call, "input 0 must have rank 1 or 2");
    }
    int64_t items = in->dims[in->rank - 1], width = out->dims[out->rank - 1];
    int64_t rows = in->rank == 2 ? in->dims[0] : 1;
    nori__arena_init(&v.arena, call->allocator);
    nori__map_init(&v.map, call->allocator);
    nori__text_init(&v.key, call->allocator);
    nori_status status = open_pool(call, &v);
    for (int64_t r = 0; r < rows && status == NORI_OK; r++) {
        float *row = (float *)out->data + r * width;
        for (int64_t i = 0; i < width; i++) {
            row[i] = 0;
        }
        count_row(&v, in, r * items, items, row, width);
        weigh_row(&v, row, width);
        status = v.key.failed ? nori__no_memory(call->err) : NORI_OK;
    }
    nori__text_free(&v.key);
    nori__map_free(&v.map);
    nori__arena_free(&v.arena);
    return status;
}
