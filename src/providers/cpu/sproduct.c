/* sproduct.c: integer matrix products over panels of int16 pairs, cut into units for threads. Integer
 * sums have no order to keep; the cuts are those of product.c. */
#include "providers/cpu/cpu.h"

#define PAIR_BLOCK 288
#define CHUNK_COLUMNS 192
#define A_BLOCK (192 * 1024)

typedef struct cut {
    size_t mr, nr;
    size_t pairs, blocks, pc;
    size_t rows, cols;       /* panels */
    size_t chunk, n_chunks;  /* column panels a unit */
    size_t slice, n_slices;  /* row panels a unit */
    size_t block_rows;
    size_t b_bytes, c_bytes; /* scratch a thread */
} cut;

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

static cut cut_up(const nori__sproduct *p, int threads)
{
    const nori__kernels *kern = nori__kernels_get();
    cut c = {.mr = kern->s16_mr, .nr = kern->s16_nr};
    size_t t = (size_t)threads;
    c.pairs = divide_up(p->k, 2);
    c.blocks = c.pairs > 0 ? divide_up(c.pairs, PAIR_BLOCK) : 1;
    c.pc = divide_up(c.pairs, c.blocks);
    c.rows = divide_up(p->m, c.mr);
    c.cols = divide_up(p->n, c.nr);
    c.n_chunks = divide_up(c.cols, CHUNK_COLUMNS / c.nr);
    if (p->count > 0 && p->count * c.n_chunks < t) {
        c.n_chunks = divide_up(t, p->count) < c.cols ? divide_up(t, p->count) : c.cols;
    }
    c.n_chunks = c.n_chunks > 0 ? c.n_chunks : 1;
    c.chunk = divide_up(c.cols, c.n_chunks);
    c.n_chunks = c.chunk > 0 ? divide_up(c.cols, c.chunk) : 0;
    size_t units = p->count * c.n_chunks;
    c.n_slices = units > 0 && units < t ? divide_up(t, units) : 1;
    c.n_slices = c.n_slices < c.rows ? c.n_slices : c.rows;
    c.slice = c.n_slices > 0 ? divide_up(c.rows, c.n_slices) : 0;
    c.n_slices = c.slice > 0 ? divide_up(c.rows, c.slice) : 0;
    c.block_rows = A_BLOCK / (c.pc * c.mr * 2 * sizeof(int16_t) + 1) + 1;
    c.b_bytes = p->pack ? nori__cpu_round((c.chunk * c.pc + 1) * c.nr * 2 * sizeof(int16_t)) : 0;
    c.c_bytes = p->finish ? nori__cpu_round(c.slice * c.mr * c.chunk * c.nr * sizeof(int32_t)) : 0;
    return c;
}

size_t nori__sproduct_bytes(const nori__sproduct *p, int threads)
{
    cut c = cut_up(p, threads);
    return (c.b_bytes + c.c_bytes) * (size_t)threads;
}

typedef struct sproduct_job {
    const nori__sproduct *p;
    const nori__kernels *kern;
    cut cut;
    char *scratch;
} sproduct_job;

/* Row panels [i0, i1) by columns of b's panels, one block of pairs, sums at c. */
static void multiply(const sproduct_job *job, const int16_t *a, const int16_t *b, size_t b_panel,
                     int32_t *c, size_t ldc, size_t block, size_t i0, size_t i1, size_t j0,
                     size_t j1)
{
    const nori__sproduct *p = job->p;
    const cut *u = &job->cut;
    size_t p0 = block * u->pc, pc = u->pairs - p0 < u->pc ? u->pairs - p0 : u->pc;
    for (size_t ib = i0; ib < i1; ib += u->block_rows) {
        size_t ie = i1 - ib < u->block_rows ? i1 : ib + u->block_rows;
        for (size_t j = j0; j < j1; j++) {
            size_t col = j * u->nr, cols = p->n - col < u->nr ? p->n - col : u->nr;
            for (size_t i = ib; i < ie; i++) {
                size_t row = i * u->mr, rows = p->m - row < u->mr ? p->m - row : u->mr;
                job->kern->s16_tile(rows, cols, pc, a + (row * u->pairs + p0 * u->mr) * 2,
                                    b + (j - j0) * b_panel,
                                    c + (row - i0 * u->mr) * ldc + (j - j0) * u->nr, ldc,
                                    block > 0);
            }
        }
    }
}

static void sproduct_units(void *user, int64_t begin, int64_t end, int thread)
{
    const sproduct_job *job = user;
    const nori__sproduct *p = job->p;
    const cut *u = &job->cut;
    char *own = job->scratch + (size_t)thread * (u->b_bytes + u->c_bytes);
    for (int64_t at = begin; at < end; at++) {
        size_t slice = (size_t)at % u->n_slices, chunk = (size_t)at / u->n_slices % u->n_chunks;
        size_t index = (size_t)at / u->n_slices / u->n_chunks;
        size_t i0 = slice * u->slice, i1 = u->rows - i0 < u->slice ? u->rows : i0 + u->slice;
        size_t j0 = chunk * u->chunk, j1 = u->cols - j0 < u->chunk ? u->cols : j0 + u->chunk;
        size_t col = j0 * u->nr, row = i0 * u->mr;
        size_t n = (j1 * u->nr < p->n ? j1 * u->nr : p->n) - col, ldc = p->n;
        const int16_t *a = NULL, *b = NULL;
        int32_t *c = NULL;
        p->part(p, index, &a, &b, &c);
        if (p->finish) {
            c = (int32_t *)(void *)(own + u->b_bytes);
            ldc = n;
        } else {
            c += row * ldc + col;
        }
        for (size_t block = 0; block < u->blocks; block++) {
            size_t p0 = block * u->pc, pc = u->pairs - p0 < u->pc ? u->pairs - p0 : u->pc;
            if (b) {
                multiply(job, a, b + (col * u->pairs + p0 * u->nr) * 2, u->pairs * u->nr * 2, c,
                         ldc, block, i0, i1, j0, j1);
                continue;
            }
            int16_t *packed = (int16_t *)(void *)own;
            for (size_t j = j0; j < j1; j++) {
                p->pack(p, index, p0, pc, j, packed + (j - j0) * pc * u->nr * 2);
            }
            multiply(job, a, packed, pc * u->nr * 2, c, ldc, block, i0, i1, j0, j1);
        }
        size_t stop = i1 * u->mr < p->m ? i1 * u->mr : p->m;
        for (size_t i = row; p->finish && i < stop; i++) {
            p->finish(p, index, i, col, n, c + (i - row) * ldc);
        }
    }
}

void nori__sproduct_run(nori_call *call, const nori__sproduct *p, void *scratch)
{
    int threads = nori__cpu_threads(call);
    sproduct_job job = {p, nori__kernels_get(), cut_up(p, threads), scratch};
    int64_t units = (int64_t)(p->count * job.cut.n_chunks * job.cut.n_slices);
    if (units > 0) {
        nori__parallel_for(call->pool, threads, units, 1, sproduct_units, &job);
    }
}

static size_t spacked(size_t n, size_t k, size_t width)
{
    size_t all = divide_up(n, width) * width;
    return all < n || !nori__mul_size(all, divide_up(k, 2), &all) ||
                   all > SIZE_MAX / (2 * sizeof(int16_t))
               ? 0
               : all * 2 * sizeof(int16_t);
}

size_t nori__spacked_a(size_t m, size_t k)
{
    return spacked(m, k, nori__kernels_get()->s16_mr);
}
