/* ref_pool_body.h: pooling for one element type. Included with T, NAME(x) defined. A unit of work
 * is a block of at most BLOCK outputs of one row; kernel positions go by outside the inner loop. */

static void NAME(pool_block)(const pool_job *job, const T *x, int64_t from, int64_t count,
                             const int64_t *offsets, int64_t n_off, double *acc, int64_t *best)
{
    const nori__ref_conv_work *c = job->c;
    int last = c->w.n - 1;
    int64_t stride = c->w.stride[last], width = c->in[last];
    for (int64_t p = 0; p < n_off; p++) {
        for (int64_t k = 0; k < c->w.kernel[last]; k++) {
            int64_t shift = k * c->w.dilation[last] - c->w.begin[last];
            int64_t lo = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
            int64_t hi = width - 1 - shift < 0 ? 0 : (width - 1 - shift) / stride + 1;
            lo = lo > from ? lo : from;
            hi = hi < from + count ? hi : from + count;
            for (int64_t j = lo; j < hi; j++) {
                int64_t at = offsets[p] + j * stride + shift;
                double v = (double)x[at], *a = &acc[j - from];
                if (job->mode == POOL_MAX) {
                    /* The first NaN is the maximum; of equals the first. */
                    if (v > *a || (v != v && *a == *a) || best[j - from] < 0) {
                        *a = v;
                        best[j - from] = at;
                    }
                } else {
                    *a += job->mode == POOL_AVERAGE ? v : pow(fabs(v), job->p);
                }
            }
        }
    }
}

static void NAME(pool_units)(void *user, int64_t begin, int64_t end, int thread)
{
    const pool_job *job = user;
    const nori__ref_conv_work *c = job->c;
    int last = c->w.n - 1;
    int64_t rows = nori__nn_product(c->out, 0, last), blocks = (c->out[last] + BLOCK - 1) / BLOCK;
    int64_t plane = nori__nn_product(c->in, 0, c->w.n);
    int64_t *offsets = job->lists + (size_t)thread * 2 * (size_t)job->positions;
    int64_t *places = offsets + job->positions;
    for (int64_t u = begin; u < end; u++) {
        int64_t from = u % blocks * BLOCK, row = u / blocks % rows, o = u / blocks / rows;
        int64_t count = c->out[last] - from < BLOCK ? c->out[last] - from : BLOCK;
        int64_t n_off = nori__nn_conv_places(c, row, offsets, places), best[BLOCK];
        double acc[BLOCK];
        for (int64_t j = 0; j < count; j++) {
            acc[j] = job->mode == POOL_MAX ? job->lowest : 0;
            best[j] = -1;
        }
        NAME(pool_block)(job, (const T *)c->x + o * plane, from, count, offsets, n_off, acc, best);
        int64_t place = (o * rows + row) * c->out[last] + from;
        pool_finish(job, row, from, count, acc);
        for (int64_t j = 0; j < count; j++) {
            ((T *)c->y)[place + j] = (T)acc[j];
        }
        for (int64_t j = 0; j < count && job->indices; j++) {
            job->indices[place + j] = o * plane + pool_index(job, best[j]);
        }
    }
}
