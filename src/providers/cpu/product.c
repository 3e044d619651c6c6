/* product.c: float matrix products over packed panels, cut into units for threads.
 *
 * k is cut into blocks that keep a few panels of B, with the rows of A that meet them, in the second
 * cache: a tile's sums need both so seldom that it is near enough, and the deeper a block, the fewer
 * times C comes and goes. Columns are cut into chunks whose B stays there while rows go by. The cut
 * along k depends on k alone; the others do not touch the order of any sum. */
#include "providers/cpu/cpu.h"

#define UNITS 4             /* of columns a thread, at least: one may be late */

typedef struct cut {
    size_t mr, nr;
    size_t rows, cols;       /* panels */
    size_t blocks, kc;       /* of k */
    size_t chunk, n_chunks;  /* column panels a unit; how many */
    size_t slice, n_slices;  /* row panels a unit; how many */
    size_t block_rows;       /* row panels whose A stays in cache */
    size_t scratch;          /* floats a thread */
} cut;

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

static cut cut_up(const nori__product *p, int threads)
{
    const nori__kernels *kern = nori__kernels_get();
    cut c = {.mr = kern->f32_mr, .nr = kern->f32_nr};
    c.rows = divide_up(p->m, c.mr);
    c.cols = divide_up(p->n, c.nr);
    c.blocks = p->k > 0 ? divide_up(p->k, kern->f32_depth) : 1;
    c.kc = (divide_up(p->k, c.blocks) + 7) / 8 * 8;
    size_t most = kern->f32_near / (c.kc * c.nr * sizeof(float) + 1) + 1, t = (size_t)threads;
    most = p->chunk ? divide_up(most * p->chunk, 8) : most;
    c.n_chunks = divide_up(c.cols, most);
    if (t > 1 && p->count > 0) { /* as many for each thread */
        size_t each = divide_up(p->count * c.n_chunks, t);
        c.n_chunks = divide_up((each > UNITS ? each : UNITS) * t, p->count);
        c.n_chunks = c.n_chunks < c.cols ? c.n_chunks : c.cols;
    }
    c.n_chunks = c.n_chunks > 0 ? c.n_chunks : 1;
    c.chunk = divide_up(c.cols, c.n_chunks);
    c.n_chunks = c.chunk > 0 ? divide_up(c.cols, c.chunk) : 0;
    size_t units = p->count * c.n_chunks;
    c.n_slices = units > 0 && units < t ? divide_up(t, units) : 1;
    c.n_slices = c.n_slices < c.rows ? c.n_slices : c.rows;
    c.slice = c.n_slices > 0 ? divide_up(c.rows, c.n_slices) : 0;
    c.n_slices = c.slice > 0 ? divide_up(c.rows, c.slice) : 0;
    c.block_rows = kern->f32_near / 4 / (c.kc * c.mr * sizeof(float) + 1) + 1;
    c.scratch = nori__cpu_round((c.chunk * c.kc + 1) * c.nr * sizeof(float)) / sizeof(float);
    return c;
}

size_t nori__product_bytes(const nori__product *p, int threads)
{
    cut c = cut_up(p, threads);
    return p->pack ? c.scratch * sizeof(float) * (size_t)threads : 0;
}

typedef struct product_job {
    const nori__product *p;
    const nori__kernels *kern;
    cut cut;
    float *scratch;
} product_job;

/* Where row panel i begins. Panels of a matrix as it is are of even height; packed ones have mr. */
static size_t row_of(const product_job *job, const nori__product_part *part, size_t i)
{
    return part->a_row ? i * job->p->m / job->cut.rows : i * job->cut.mr;
}

static void multiply(const product_job *job, const nori__product_part *part, const float *b,
                     size_t b_panel, const float *after, size_t block, size_t i0, size_t i1,
                     size_t j0, size_t j1)
{
    const nori__product *p = job->p;
    const cut *c = &job->cut;
    size_t k0 = block * c->kc, kc = p->k - k0 < c->kc ? p->k - k0 : c->kc;
    bool first = block == 0, last = k0 + kc >= p->k;
    nori__f32_finish f = {.clamp = last && p->act.clamp, .low = p->act.low, .high = p->act.high};
    size_t a_row = part->a_row ? part->a_row : 1, a_k = part->a_row ? part->a_k : c->mr;
    size_t parts = divide_up(i1 - i0, c->block_rows);
    for (size_t at = 0; at < parts; at++) { /* of about equal size: each asks for B once more */
        size_t ib = i0 + (i1 - i0) * at / parts, ie = i0 + (i1 - i0) * (at + 1) / parts;
        for (size_t j = j0; j < j1; j++) {
            size_t col = j * c->nr, cols = p->n - col < c->nr ? p->n - col : c->nr;
            const float *panel = b + (j - j0) * b_panel;
            const float *next = j + 1 < j1 ? panel + b_panel : ie < i1 ? b : after;
            /* Each tile asks for its share of the panel that comes next, so that it has come. */
            size_t share = divide_up(c->nr * sizeof(float), ie - ib);
            bool ask = part->b && next;
            f.col = first && p->col ? p->col + col : NULL;
            for (size_t i = ib; i < ie; i++) {
                size_t row = row_of(job, part, i), end = row_of(job, part, i + 1);
                size_t rows = (end < p->m ? end : p->m) - row;
                float *to = part->c + row * p->ldc + col;
                const float *a = part->a_row ? part->a + row * a_row + k0 * a_k
                                             : part->a + row * p->k + k0 * c->mr;
                f.row = first && part->row ? part->row + row : NULL;
                f.add = !first ? to : part->add ? part->add + row * p->ldc + col : NULL;
                f.ld_add = p->ldc;
                f.fetch = ask ? next + (i - ib) * share * kc / sizeof(float) : NULL;
                f.fetch_step = share;
                job->kern->f32_tile(rows, cols, kc, a, a_row, a_k, panel, to, p->ldc, &f);
            }
        }
    }
}

static void product_units(void *user, int64_t begin, int64_t end, int thread)
{
    const product_job *job = user;
    const nori__product *p = job->p;
    const cut *c = &job->cut;
    for (int64_t u = begin; u < end; u++) {
        size_t unit = (size_t)u;
        size_t slice = unit % c->n_slices, chunk = unit / c->n_slices % c->n_chunks;
        size_t index = unit / c->n_slices / c->n_chunks;
        size_t i0 = slice * c->slice, i1 = c->rows - i0 < c->slice ? c->rows : i0 + c->slice;
        size_t j0 = chunk * c->chunk, j1 = c->cols - j0 < c->chunk ? c->cols : j0 + c->chunk;
        nori__product_part part = {0};
        p->part(p, index, &part);
        for (size_t block = 0; block < c->blocks; block++) {
            size_t k0 = block * c->kc, kc = p->k - k0 < c->kc ? p->k - k0 : c->kc;
            if (part.b) {
                const float *b = part.b + j0 * c->nr * p->k + k0 * c->nr, *after = NULL;
                if (block + 1 < c->blocks) {
                    after = b + kc * c->nr;
                } else if (j1 < c->cols) {
                    after = part.b + j1 * c->nr * p->k;
                }
                multiply(job, &part, b, p->k * c->nr, after, block, i0, i1, j0, j1);
                continue;
            }
            float *b = job->scratch + (size_t)thread * c->scratch;
            for (size_t j = j0; j < j1; j++) {
                p->pack(p, index, k0, kc, j, b + (j - j0) * kc * c->nr);
            }
            multiply(job, &part, b, kc * c->nr, NULL, block, i0, i1, j0, j1);
        }
        if (p->act.apply) {
            size_t col = j0 * c->nr, n = (j1 * c->nr < p->n ? j1 * c->nr : p->n) - col;
            size_t stop = row_of(job, &part, i1) < p->m ? row_of(job, &part, i1) : p->m;
            for (size_t row = row_of(job, &part, i0); row < stop; row++) {
                float *to = part.c + row * p->ldc + col;
                job->kern->f32_unary[p->act.function](n, to, to, p->act.p);
            }
        }
    }
}

void nori__product_run(nori_call *call, const nori__product *p, void *scratch)
{
    int threads = nori__cpu_threads(call);
    product_job job = {p, nori__kernels_get(), cut_up(p, threads), scratch};
    int64_t units = (int64_t)(p->count * job.cut.n_chunks * job.cut.n_slices);
    if (units > 0) {
        nori__cpu_for(call->pool, threads, units, 1, product_units, &job);
    }
}

/* ---- packing ---- */

static size_t packed(size_t n, size_t k, size_t width)
{
    size_t all = divide_up(n, width) * width;
    return all < n || !nori__mul_size(all, k, &all) || all > SIZE_MAX / sizeof(float) ? 0 : all;
}

size_t nori__packed_a(size_t m, size_t k)
{
    return packed(m, k, nori__kernels_get()->f32_mr);
}

size_t nori__packed_b(size_t n, size_t k)
{
    return packed(n, k, nori__kernels_get()->f32_nr);
}

/* Rows of a matrix whose columns are panels: so many at a time are read from first to last, or each
 * panel would meet all of the file's pages again. */
#define PACK_ROWS 16

static void pack(size_t width, size_t n, size_t k, const float *in, size_t k_step, size_t step,
                 float *out)
{
    size_t rows = step == 1 ? PACK_ROWS : k;
    for (size_t p = 0; p < k; p += rows) {
        size_t depth = k - p < rows ? k - p : rows;
        for (size_t j = 0; j < n; j += width) {
            size_t count = n - j < width ? n - j : width;
            nori__kernels_get()->f32_pack(width, depth, count, in + p * k_step + j * step, k_step, step,
                                          out + j * k + p * width);
        }
    }
}

void nori__pack_a(size_t m, size_t k, const float *a, size_t row, size_t col, float *out)
{
    pack(nori__kernels_get()->f32_mr, m, k, a, col, row, out);
}

void nori__pack_b(size_t n, size_t k, const float *b, size_t row, size_t col, float *out)
{
    pack(nori__kernels_get()->f32_nr, n, k, b, row, col, out);
}
