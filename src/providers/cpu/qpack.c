/* qpack.c: packs 8-bit weights for u8_tile.
 *
 * A weight minus its zero point has up to nine bits, and some levels bear only pairs of weights of
 * limited sums (u8_pairs). So each weight becomes a sum of parts that the level bears: the first one
 * is dense, the others are lists of the quads where something is left. */
#include "plan/packed.h"
#include "providers/cpu/qlines.h"

#define N NORI__U8_BLOCK

/* The values of one channel, filled up with zeros to whole quads a term; adds them up. */
static int32_t channel_values(const nori__qweights *f, size_t channel, size_t quads, int16_t *out)
{
    const uint8_t *data = (const uint8_t *)f->data->data + channel * f->step;
    int32_t zero = 0;
    uint32_t sum = 0;
    if (f->zero) {
        zero = (int32_t)nori__tensor_get_i64(f->zero, f->zero->count == 1 ? 0 : (int64_t)channel);
    }
    /* q ^ 128 - 128 makes an int8 of its byte */
    uint8_t flip = f->data->type == NORI_INT8 ? 128 : 0;
    zero += flip;
    const size_t *from = f->from;
    for (size_t t = 0; t < f->terms; t++, out += 4 * quads) {
        for (size_t b = 0; b < f->bytes; b++) {
            int32_t v = (data[*from++] ^ flip) - zero;
            out[b] = (int16_t)v;
            sum += (uint32_t)v;
        }
        memset(out + f->bytes, 0, (4 * quads - f->bytes) * sizeof(*out));
    }
    return (int32_t)sum;
}

static int32_t within(int32_t v, int32_t low, int32_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Takes from two neighbouring values what the level bears at once. True: something is left. */
static bool take_pair(int16_t *v, bool pairs, int8_t *out)
{
    int32_t a = v[0], b = v[1], high = 127, low = -128;
    if (pairs && ((a > 0 && b > 0 && a + b > 128) || (a < 0 && b < 0 && a + b < -128))) {
        high = 64;
        low = -64;
    }
    out[0] = (int8_t)within(a, low, high);
    out[1] = (int8_t)within(b, low, high);
    v[0] = (int16_t)(a - out[0]);
    v[1] = (int16_t)(b - out[1]);
    return v[0] != 0 || v[1] != 0;
}

static bool take_quad(int16_t *v, bool pairs, int8_t *out)
{
    bool left = take_pair(v, pairs, out);
    return take_pair(v + 2, pairs, out + 2) || left;
}

typedef struct packer {
    const nori__qweights *from;
    nori__qpack *to;
    bool pairs;
    size_t k;        /* values of a channel */
    int16_t *values; /* [N][k] */
    bool *left;      /* a quad: whether parts of it are left */
} packer;

/* Dense weights of a block. True: something is left in p->values. */
static bool pack_block(packer *p, size_t group, size_t block)
{
    nori__qpack *to = p->to;
    size_t quads = p->k / 4, c0 = block * N, n = to->made - c0 < N ? to->made - c0 : N;
    int8_t *w = to->w + (group * to->blocks + block) * quads * 4 * N;
    memset(w, 0, quads * 4 * N);
    memset(p->left, 0, quads * sizeof(*p->left));
    for (size_t c = 0; c < n; c++) {
        int16_t *v = p->values + c * p->k;
        to->sums[group * to->wide + c0 + c] =
            channel_values(p->from, group * to->made + c0 + c, to->quads, v);
        for (size_t q = 0; q < quads; q++) {
            p->left[q] |= take_quad(v + 4 * q, p->pairs, w + (q * N + c) * 4);
        }
    }
    return memchr(p->left, true, quads * sizeof(*p->left)) != NULL;
}

/* The parts of a block after the first into rest and at (NULL: only counted). */
static size_t pack_rest(packer *p, size_t block, int8_t *rest, uint32_t *at)
{
    const nori__qpack *to = p->to;
    size_t quads = p->k / 4, c0 = block * N, n = to->made - c0 < N ? to->made - c0 : N, made = 0;
    int8_t part[4 * N];
    for (size_t q = 0; q < quads; q++) {
        for (bool left = p->left[q]; left; made++) {
            left = false;
            memset(part, 0, sizeof(part));
            for (size_t c = 0; c < n; c++) {
                left |= take_quad(p->values + c * p->k + 4 * q, p->pairs, part + 4 * c);
            }
            if (rest) {
                memcpy(rest + made * sizeof(part), part, sizeof(part));
                at[2 * made] = (uint32_t)(q / to->quads);
                at[2 * made + 1] = (uint32_t)(q % to->quads);
            }
        }
    }
    return made;
}

/* Room for the parts after the first of all blocks; ready: they are there. */
static nori_status make_rest(nori__qpack *to, size_t all, const nori_allocator *a, bool *ready,
                             nori_error *err)
{
    bool found[2] = {true, true};
    if (all > 0) {
        to->rest_bytes = all * 4 * N;
        to->at_bytes = all * 2 * sizeof(*to->at);
        to->rest = nori__packed(a, to->rest_bytes, &found[0]);
        to->at = nori__packed(a, to->at_bytes, &found[1]);
    }
    *ready = found[0] && found[1];
    return all == 0 || (to->rest && to->at) ? NORI_OK : nori__no_memory(err);
}

/* Where each block's weights are, and its rests. */
static void point(nori__qpack *to, size_t k)
{
    size_t done = 0;
    for (size_t i = 0; i < to->groups * to->blocks; i++) {
        nori__u8_block *b = &to->block[i];
        b->w = to->w + i * k * N;
        b->rests = to->rests[i];
        if (b->rests > 0) {
            b->rest = to->rest + done * 4 * N;
            b->at = to->at + 2 * done;
            done += b->rests;
        }
    }
}

/* Two rounds: parts are counted, then kept. */
static nori_status pack(packer *p, const nori_allocator *a, nori_error *err)
{
    nori__qpack *to = p->to;
    size_t all = 0, done = 0;
    bool ready;
    memset(to->sums, 0, to->sums_bytes);
    for (size_t i = 0; i < to->groups * to->blocks; i++) {
        size_t block = i % to->blocks;
        to->rests[i] = pack_block(p, i / to->blocks, block)
                           ? (uint32_t)pack_rest(p, block, NULL, NULL)
                           : 0;
        all += to->rests[i];
    }
    NORI__TRY(make_rest(to, all, a, &ready, err));
    for (size_t i = 0; i < to->groups * to->blocks; i++) {
        if (to->rests[i] > 0) {
            pack_block(p, i / to->blocks, i % to->blocks);
            pack_rest(p, i % to->blocks, to->rest + done * 4 * N, to->at + 2 * done);
            done += to->rests[i];
        }
    }
    point(to, p->k);
    return NORI_OK;
}

/* What a file had packed may say anything: how many rests there are, and where they go, is checked. */
static bool adopt(nori__qpack *to, size_t k, const nori_allocator *a)
{
    size_t all = 0, most = to->terms * to->quads * 4 * N * to->blocks * to->groups;
    bool ready;
    for (size_t i = 0; i < to->groups * to->blocks; i++) {
        if (to->rests[i] > most || (all += to->rests[i]) > most) {
            return false;
        }
    }
    if (make_rest(to, all, a, &ready, NULL) != NORI_OK || !ready) {
        return false;
    }
    for (size_t i = 0; i < all; i++) {
        if (to->at[2 * i] >= to->terms || to->at[2 * i + 1] >= to->quads) {
            return false;
        }
    }
    point(to, k);
    return true;
}

static nori_status make(packer *p, const nori_allocator *a, nori_error *err)
{
    nori__qpack *to = p->to;
    bool ready[3] = {false};
    to->w = nori__packed(a, to->w_bytes, &ready[0]);
    to->sums = nori__packed(a, to->sums_bytes, &ready[1]);
    to->rests = nori__packed(a, to->rests_bytes, &ready[2]);
    to->block = nori__alloc_zero(a, to->block_bytes);
    if (!to->w || !to->sums || !to->rests || !to->block) {
        return nori__no_memory(err);
    }
    bool all = ready[0] && ready[1] && ready[2];
    if (all && adopt(to, p->k, a)) {
        return NORI_OK;
    }
    if (ready[0] || ready[1] || ready[2]) { /* some of it is a file's, which nothing is written to */
        nori__qpack none = *to;
        nori__qpack_free(to, a);
        *to = none;
        to->rest = NULL;
        to->at = NULL;
        to->rest_bytes = to->at_bytes = 0;
        to->w = nori__alloc(a, to->w_bytes);
        to->sums = nori__alloc(a, to->sums_bytes);
        to->rests = nori__alloc(a, to->rests_bytes);
        to->block = nori__alloc_zero(a, to->block_bytes);
        if (!to->w || !to->sums || !to->rests || !to->block) {
            return nori__no_memory(err);
        }
    }
    size_t values = p->k * N * sizeof(*p->values), left = p->k * sizeof(*p->left);
    p->values = nori__alloc(a, values);
    p->left = nori__alloc(a, left);
    nori_status status = p->values && p->left ? pack(p, a, err) : nori__no_memory(err);
    nori__release(a, p->values, values);
    nori__release(a, p->left, left);
    return status;
}

nori_status nori__qpack_make(const nori__qweights *from, const nori_allocator *a, nori__qpack *out,
                             nori_error *err)
{
    packer p = {.from = from, .to = out, .pairs = nori__kernels_get()->u8_pairs};
    size_t all = 0;
    memset(out, 0, sizeof(*out));
    out->groups = from->groups;
    out->made = from->made;
    out->terms = from->terms;
    out->bytes = from->bytes;
    out->quads = from->bytes / 4 + (from->bytes % 4 != 0);
    out->blocks = from->made / N + (from->made % N != 0);
    out->wide = out->blocks * N;
    p.k = out->terms * out->quads * 4;
    bool fits = nori__mul_size(out->groups, out->wide, &all) &&
                nori__mul_size(all, p.k, &out->w_bytes) && p.k < SIZE_MAX / (4 * N) &&
                out->terms < UINT32_MAX && out->quads < UINT32_MAX;
    out->sums_bytes = all * sizeof(int32_t);
    out->block_bytes = out->groups * out->blocks * sizeof(*out->block);
    out->rests_bytes = out->groups * out->blocks * sizeof(*out->rests);
    nori_status status = fits ? make(&p, a, err) : nori__no_memory(err);
    if (status != NORI_OK) {
        nori__qpack_free(out, a);
    }
    return status;
}

void nori__qpack_free(nori__qpack *p, const nori_allocator *a)
{
    nori__release(a, p->w, p->w_bytes);
    nori__release(a, p->rest, p->rest_bytes);
    nori__release(a, p->at, p->at_bytes);
    nori__release(a, p->rests, p->rests_bytes);
    nori__release(a, p->sums, p->sums_bytes);
    nori__release(a, p->block, p->block_bytes);
    memset(p, 0, sizeof(*p));
}

size_t nori__qpack_bytes(const nori__qpack *p)
{
    return p->w_bytes + p->rest_bytes + p->at_bytes + p->rests_bytes + p->sums_bytes + p->block_bytes;
}
