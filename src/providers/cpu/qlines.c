/* qlines.c: runs products of lines of bytes with packed weights: cuts them into tiles, and those into
 * units for threads. Integer sums have no order to keep. */
#include "providers/cpu/qlines.h"

/* Lines a unit at most: their addresses are kept while all blocks of channels pass. */
#define SPAN 384
/* Products that are worth another thread. */
#define WORTH (256.0 * 1024)
/* Quads of terms, and least width of rows, that make pieces of rows worth it (u8_run). */
#define FULL 16
#define NARROW 7

typedef struct qlines_job {
    const nori__qlines *q;
    const nori__kernels *kern;
    size_t lines, span, spans; /* of an image; lines a unit */
    size_t share, shares;      /* blocks a unit */
    bool in_rows;              /* tiles are of pieces of rows */
} qlines_job;

static void addresses(const nori__qlines *q, const uint8_t *x, size_t line, size_t n,
                      const uint8_t **out)
{
    size_t w = line % q->size[2], row = line / q->size[2];
    for (size_t i = 0; i < n; row++, w = 0) {
        const uint8_t *p = x + row / q->size[1] * q->step[0] + row % q->size[1] * q->step[1];
        for (; w < q->size[2] && i < n; w++, i++) {
            out[i] = p + w * q->step[2];
        }
    }
}

/* Lines from one on that are neighbours in a row, a row being cut into equal pieces. */
static size_t piece(const qlines_job *job, size_t line, size_t left)
{
    size_t row = job->q->size[2], run = job->kern->u8_run;
    size_t pieces = (row + run - 1) / run, most = (row + pieces - 1) / pieces;
    size_t in = line % row, n = most - in % most < row - in ? most - in % most : row - in;
    return n < left ? n : left;
}

/* How many lines a tile has that begins at line, tiles of equal size being so many. */
static size_t tile_lines(const qlines_job *job, size_t line, size_t left, size_t tiles)
{
    if (!job->in_rows) {
        return (left + tiles - 1) / tiles;
    }
    size_t n = piece(job, line, left);
    return n + (n < left ? piece(job, line + n, left - n) : 0);
}

static void *element(const nori__qlines *q, size_t at)
{
    return (char *)q->y + at * (q->finish.form == NORI__U8_BYTES ? 1 : 4);
}

static void qlines_units(void *user, int64_t begin, int64_t end, int thread)
{
    const qlines_job *job = user;
    const nori__qlines *q = job->q;
    const nori__qpack *w = q->w;
    const uint8_t *x[SPAN];
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t unit = (size_t)u, share = unit % job->shares;
        unit /= job->shares;
        size_t line = unit % job->spans * job->span;
        unit /= job->spans;
        size_t group = unit % w->groups, image = unit / w->groups;
        size_t n = job->lines - line < job->span ? job->lines - line : job->span;
        addresses(q, q->x + image * q->x_image + group * q->group, line, n, x);
        size_t b1 = (share + 1) * job->share < w->blocks ? (share + 1) * job->share : w->blocks;
        size_t tiles = (n + job->kern->u8_lines - 1) / job->kern->u8_lines;
        for (size_t b = share * job->share; b < b1;) {
            size_t nb = b1 - b < job->kern->u8_blocks ? b1 - b : job->kern->u8_blocks;
            size_t c = b * NORI__U8_BLOCK, from = group * w->wide + c;
            size_t channels = w->made - c;
            nori__u8_finish f = q->finish;
            f.start += from;
            f.scale = f.scale ? f.scale + from : NULL;
            f.shift = f.shift ? f.shift + from : NULL;
            f.channels = channels < nb * NORI__U8_BLOCK ? channels : nb * NORI__U8_BLOCK;
            for (size_t i0 = 0, left = tiles, m; i0 < n; i0 += m, left -= left > 1) {
                m = tile_lines(job, line + i0, n - i0, left);
                job->kern->u8_tile(m, nb, w->terms, w->quads, q->offset, x + i0,
                                   w->block + group * w->blocks + b,
                                   element(q, image * q->y_image + (line + i0) * q->ldy +
                                                  group * w->made + c),
                                   q->ldy, &f);
            }
            b += nb;
        }
    }
}

void nori__qlines_run(nori_call *call, const nori__qlines *q)
{
    const nori__qpack *w = q->w;
    qlines_job job = {.q = q, .kern = nori__kernels_get(),
                      .lines = q->size[0] * q->size[1] * q->size[2]};
    size_t together = q->images * w->groups, least = 4 * job.kern->u8_lines;
    if (job.lines == 0 || together == 0) {
        return;
    }
    double work = (double)together * (double)job.lines * (double)w->wide *
                  (double)(w->terms * w->quads * 4);
    int threads = nori__cpu_threads(call);
    size_t most = work / WORTH < 1e6 ? (size_t)(work / WORTH) + 1 : 1000000;
    threads = (size_t)threads > most ? (int)most : threads;
    size_t wanted = threads > 1 ? 4 * (size_t)threads : 1;
    size_t longest = q->span > 0 && q->span < SPAN ? q->span : SPAN;
    size_t spans = (job.lines + longest - 1) / longest;
    if (spans * together < wanted) {
        size_t more = (wanted + together - 1) / together, can = job.lines / least + 1;
        spans = more < can ? more : can;
        spans = spans * longest < job.lines ? (job.lines + longest - 1) / longest : spans;
    }
    job.span = (job.lines + spans - 1) / spans;
    job.spans = (job.lines + job.span - 1) / job.span;
    size_t pairs = (w->blocks + job.kern->u8_blocks - 1) / job.kern->u8_blocks;
    job.shares = (wanted + job.spans * together - 1) / (job.spans * together);
    job.shares = job.shares < pairs ? job.shares : pairs;
    job.in_rows = job.kern->u8_run > 0 && w->quads % FULL == 0 && q->size[2] >= NARROW;
    job.share = (pairs + job.shares - 1) / job.shares * job.kern->u8_blocks;
    job.shares = (w->blocks + job.share - 1) / job.share;
    nori__parallel_for(call->pool, threads, (int64_t)(together * job.spans * job.shares), 1,
                       qlines_units, &job);
}

void nori__qlines_start(const nori__qpack *w, const int32_t *bias, int32_t zero, int32_t *start)
{
    for (size_t g = 0; g < w->groups; g++) {
        for (size_t c = 0; c < w->wide; c++) {
            size_t i = g * w->wide + c;
            uint32_t b = bias && c < w->made ? (uint32_t)bias[g * w->made + c] : 0;
            start[i] = (int32_t)(b - (uint32_t)zero * (uint32_t)w->sums[i]);
        }
    }
}

void nori__qlines_limits(nori__u8_finish *f, int32_t zero, bool is_signed, bool biased)
{
    f->low = (float)((is_signed ? -128 : 0) - zero);
    f->high = (float)((is_signed ? 127 : 255) - zero);
    f->zero = zero + (is_signed && biased ? 128 : 0);
}
