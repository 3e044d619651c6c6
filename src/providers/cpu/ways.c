/* ways.c: the table of ways, when each can be gone, and the rules. */
#include "providers/cpu/ways.h"

#include <stdio.h>

#include "providers/cpu/cpu.h"

/* ---- convolutions over channel blocks ---- */

enum { WAY_DIRECT = 0, WAY_WINOGRAD = 5, WAY_WINOGRAD2 = 10 };
static const nori__way conv_ways[] = {
    {"direct", NORI__WAY_DIRECT, NORI__LINES_BY_WIDTH, 8, 0},
    {"direct, as rows", NORI__WAY_DIRECT, NORI__LINES_AS_ROWS, 8, 0},
    {"direct, by column", NORI__WAY_DIRECT, NORI__LINES_BY_COLUMN, 8, 0},
    {"direct, short spans", NORI__WAY_DIRECT, NORI__LINES_BY_WIDTH, 3, 0},
    {"direct, long spans", NORI__WAY_DIRECT, NORI__LINES_BY_WIDTH, 24, 0},
    {"winograd", NORI__WAY_WINOGRAD, 0, 8, 0},
    {"winograd, short spans", NORI__WAY_WINOGRAD, 0, 4, 0},
    {"winograd, long spans", NORI__WAY_WINOGRAD, 0, 16, 0},
    {"direct, one thread", NORI__WAY_DIRECT, NORI__LINES_BY_WIDTH, 8, 1},
    {"winograd, one thread", NORI__WAY_WINOGRAD, 0, 8, 1},
    {"winograd, small tiles", NORI__WAY_WINOGRAD2, 0, 8, 0},
};

static bool winograd_fits(const nori__layer *l)
{
    bool fits = l->group == 1 && l->joined % 2 == 0; /* not over planes */
    for (int d = 0; d < 2; d++) {
        fits = fits && l->kernel[d] == 3 && l->stride[d] == 1 && l->dilation[d] == 1;
    }
    return fits;
}

static bool conv_fits(const nori__way *w, const nori__layer *l)
{
    bool planes = l->joined % 2 != 0;
    bool point = l->kernel[0] * l->kernel[1] == 1 && l->stride[0] == 1 && l->stride[1] == 1;
    return w->form != NORI__WAY_DIRECT ? winograd_fits(l)
                                       : w->lines == NORI__LINES_BY_WIDTH || (!planes && !point);
}

/* What fits the measurements of both levels, in cycles: two vectors of products each, an output block alone
 * costing more than half a pair; a tile's transforms of one block, by position; weights come from far, along
 * with half of the products. Direct sums reach four fifths. */
#define PRODUCTS 2.0
#define ALONE 0.4
#define TRANSFORM 7.0 /* a position */
#define REACHED 0.8
#define NEAR_BYTES (256.0 * 1024) /* of weights, and bytes a cycle */
#define NEAR_SPEED 18.0
#define FAR_BYTES (16.0 * 1024 * 1024) /* from here on other layers' weights push them out to memory */
#define FAR_SPEED 9.0
#define FURTHER_SPEED 4.5
#define PAYS 1.2  /* more weights must gain something */
#define LARGE 56  /* a map of unknown size */
#define SMALL 256.0    /* pixels of a map whose tiles may be small ones */
#define SMALL_PAYS 1.2 /* what they cost besides: more sums come and go */
#define SPAN_BYTES (512.0 * 1024) /* of a span's transformed input, as bconv_winograd.c has it */

/* Cycles of Winograd's form with tiles of so many outputs a side. Small maps waste tiles, few tiles do not
 * pay for its weights, and each span of tiles reads them again. */
static double winograd_cycles(const nori__layer *l, double tile, double read, double made, double blocks)
{
    const nori__kernels *kern = nori__kernels_get();
    double block = (double)kern->block, pixels = (double)kern->block_pixels, tiles = 1;
    double images = l->batch > 0 ? (double)l->batch : 1;
    double positions = (tile + 2) * (tile + 2), channels = (double)l->channels;
    for (int d = 0; d < 2; d++) {
        int64_t size = l->out[d] < 0 ? LARGE : l->out[d];
        tiles *= (double)((size + (int64_t)tile - 1) / (int64_t)tile);
    }
    double most = SPAN_BYTES / (positions * read * block * sizeof(float));
    most = most < pixels ? pixels : most;
    double spans = tiles < most * 1.5 ? images : images * tiles / most;
    double bytes = positions * channels * blocks * block * sizeof(float);
    double speed = bytes < NEAR_BYTES ? NEAR_SPEED : bytes < FAR_BYTES ? FAR_SPEED : FURTHER_SPEED;
    double products = images * tiles * positions * channels * made / PRODUCTS;
    double weights = spans * bytes / speed + products / 2;
    return (weights > products ? weights : products) +
           images * tiles * (read + blocks) * positions * TRANSFORM;
}

static uint32_t conv_rule(const nori__layer *l)
{
    int64_t block = (int64_t)nori__kernels_get()->block, blocks = (l->made + block - 1) / block;
    double read = (double)((l->channels + block - 1) / block);
    double made = (double)blocks + (blocks % 2 == 0 ? 0 : ALONE);
    double map = 1, images = l->batch > 0 ? (double)l->batch : 1;
    if (!winograd_fits(l)) {
        return WAY_DIRECT;
    }
    for (int d = 0; d < 2; d++) {
        map *= (double)(l->out[d] < 0 ? LARGE : l->out[d]);
    }
    double direct = 9 * images * map * (double)l->channels * made / PRODUCTS / REACHED;
    double large = winograd_cycles(l, 4, read, made, (double)blocks);
    double small = winograd_cycles(l, 2, read, made, (double)blocks);
    bool is_small = map <= SMALL && small * SMALL_PAYS < large;
    if (direct <= PAYS * (is_small ? small : large)) {
        return WAY_DIRECT;
    }
    return is_small ? WAY_WINOGRAD2 : WAY_WINOGRAD;
}

/* ---- what goes in bands and spans ---- */

static bool always(const nori__way *w, const nori__layer *l)
{
    (void)w;
    (void)l;
    return true;
}

static uint32_t first(const nori__layer *l)
{
    (void)l;
    return 0;
}

static const nori__way depthwise_ways[] = {
    {"rows", 0, 0, 8, 0},
    {"short spans", 0, 0, 2, 0},
    {"long spans", 0, 0, 32, 0},
    {"rows, one thread", 0, 0, 8, 1},
};

static const nori__way expand_ways[] = {
    {"bands", 0, 0, 8, 0},
    {"low bands", 0, 0, 3, 0},
    {"high bands", 0, 0, 24, 0},
    {"apart", NORI__EXPAND_APART, 0, 8, 0},
    {"bands, one thread", 0, 0, 8, 1},
};

static const nori__way stem_ways[] = {
    {"bands", 0, 0, 8, 0},
    {"low bands", 0, 0, 2, 0},
    {"high bands", 0, 0, 24, 0},
};

/* ---- products ---- */

static bool product_fits(const nori__way *w, const nori__layer *l)
{
    bool few = l->out[0] >= 0 && l->out[0] <= NORI__ROWS_FEW;
    return w->form == NORI__ROWS_COPIED || w->spans != 8 ? !few : true;
}

static const nori__way product_ways[] = {
    {"panels", NORI__ROWS_BY_DISTANCE, 0, 8, 0},
    {"rows as they are", NORI__ROWS_AS_THEY_ARE, 0, 8, 0},
    {"rows copied", NORI__ROWS_COPIED, 0, 8, 0},
    {"narrow chunks", NORI__ROWS_BY_DISTANCE, 0, 4, 0},
    {"wide chunks", NORI__ROWS_BY_DISTANCE, 0, 16, 0},
    {"panels, one thread", NORI__ROWS_BY_DISTANCE, 0, 8, 1},
};

/* ---- convolutions on integers ---- */

static bool conv8_fits(const nori__way *w, const nori__layer *l)
{
    bool deep = l->joined != 0;
    bool whole = l->dilation[1] == 1 && l->kernel[1] > 1 && l->group == 1;
    return !deep && (w->form == NORI__TERMS_ROWS || whole);
}

static const nori__way conv8_ways[] = {
    {"rows", NORI__TERMS_ROWS, 0, 8, 0},
    {"positions", NORI__TERMS_POSITIONS, 0, 8, 0},
    {"rows, short spans", NORI__TERMS_ROWS, 0, 2, 0},
    {"rows, one thread", NORI__TERMS_ROWS, 0, 8, 1},
};

/* ---- the table ---- */

typedef struct ways_row {
    const char *name;
    const nori__way *ways;
    uint32_t count;
    bool (*fits)(const nori__way *w, const nori__layer *l);
    uint32_t (*rule)(const nori__layer *l);
} ways_row;

#define LIST(ways) ways, NORI__COUNT(ways)
static const ways_row rows[NORI__WAYS_COUNT] = {
    [NORI__WAYS_CONV] = {"conv", LIST(conv_ways), conv_fits, conv_rule},
    [NORI__WAYS_DEPTHWISE] = {"depthwise", LIST(depthwise_ways), always, first},
    [NORI__WAYS_EXPAND] = {"expand", LIST(expand_ways), always, first},
    [NORI__WAYS_STEM] = {"stem", LIST(stem_ways), always, first},
    [NORI__WAYS_PRODUCT] = {"product", LIST(product_ways), product_fits, first},
    [NORI__WAYS_CONV8] = {"int8 conv", LIST(conv8_ways), conv8_fits, first},
};

const nori__way *nori__way_usual(nori__ways_kind kind, const nori__layer *layer)
{
    return &rows[kind].ways[rows[kind].rule(layer)];
}

const nori__way *nori__way_for(const nori_allocator *a, nori__ways_kind kind, const nori__layer *layer)
{
    const ways_row *row = &rows[kind];
    nori__way_ask ask = {.kind = kind, .usual = row->rule(layer), .layer = *layer};
    for (uint32_t i = 0; i < row->count; i++) {
        ask.fits |= (uint32_t)row->fits(&row->ways[i], layer) << i;
    }
    ask.fits |= (uint32_t)1 << ask.usual;
    return &row->ways[nori__way_asked(a, &ask)];
}

const char *nori__ways_name(uint32_t kind)
{
    return kind < NORI__WAYS_COUNT ? rows[kind].name : NULL;
}

const nori__way *nori__way_at(uint32_t kind, uint32_t way)
{
    return kind < NORI__WAYS_COUNT && way < rows[kind].count ? &rows[kind].ways[way] : NULL;
}

/* "56x28", "?" where it is not known. */
static void sizes_text(const int64_t *sizes, char *out, size_t room)
{
    char one[2][24];
    for (int d = 0; d < 2; d++) {
        snprintf(one[d], sizeof(one[d]), sizes[d] < 0 ? "?" : "%lld", (long long)sizes[d]);
    }
    snprintf(out, room, "%sx%s", one[0], one[1]);
}

void nori__layer_text(uint32_t kind, const nori__layer *l, char *out, size_t size)
{
    char kernel[48], in[48], more[96] = "";
    const char *name = nori__ways_name(kind);
    if (kind == NORI__WAYS_PRODUCT) {
        char rows_text[24];
        snprintf(rows_text, sizeof(rows_text), l->out[0] < 0 ? "?" : "%lld", (long long)l->out[0]);
        snprintf(out, size, "product %s x %lld x %lld", rows_text, (long long)l->channels,
                 (long long)l->made);
        return;
    }
    sizes_text(l->kernel, kernel, sizeof(kernel));
    sizes_text(l->in, in, sizeof(in));
    size_t at = 0;
    const struct {
        const char *word;
        int64_t value, usual;
    } parts[] = {{"stride", l->stride[0], 1}, {"dilation", l->dilation[0], 1},
                 {"group", kind == NORI__WAYS_DEPTHWISE ? 1 : l->group, 1}, {"batch", l->batch, 1}};
    for (size_t i = 0; i < NORI__COUNT(parts); i++) {
        if (parts[i].value > 0 && parts[i].value != parts[i].usual && at < sizeof(more)) {
            int n = snprintf(more + at, sizeof(more) - at, ", %s %lld", parts[i].word,
                             (long long)parts[i].value);
            at += n > 0 ? (size_t)n : 0;
        }
    }
    snprintf(out, size, "%s %s, %lld -> %lld, %s%s", name ? name : "?", kernel,
             (long long)l->channels, (long long)l->made, in, more);
}
