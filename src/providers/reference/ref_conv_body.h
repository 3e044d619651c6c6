/* ref_conv_body.h: convolution for one element type. Included with T, ACC, NAME(x) defined.
 *
 * A unit of work is a block of at most BLOCK outputs of one row: sums are kept for the block while
 * input channels and kernel positions go by, so the inner loop runs over neighbours. */

static void NAME(conv_row)(const nori__ref_conv_work *c, int64_t from, int64_t count,
                           const int64_t *offsets, int64_t n_off, const int64_t *places,
                           const T *x, const T *weight, ACC *acc)
{
    int last = c->w.n - 1;
    int64_t stride = c->w.stride[last], width = c->in[last], kw = c->w.kernel[last];
    int64_t per_group = c->channels / c->group;
    int64_t x_channel = nori__nn_product(c->in, 0, c->w.n);
    int64_t w_channel = nori__nn_product(c->w.kernel, 0, c->w.n);
    for (int64_t ic = 0; ic < per_group; ic++, x += x_channel, weight += w_channel) {
        for (int64_t p = 0; p < n_off; p++) {
            const T *row = x + offsets[p];
            const T *wp = weight + places[p];
            for (int64_t k = 0; k < kw; k++) {
                int64_t shift = k * c->w.dilation[last] - c->w.begin[last];
                /* Outputs j in [lo, hi) read inside the row: 0 <= j * stride + shift < width. */
                int64_t lo = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
                int64_t hi = width - 1 - shift < 0 ? 0 : (width - 1 - shift) / stride + 1;
                lo = lo > from ? lo : from;
                hi = hi < from + count ? hi : from + count;
                if (lo >= hi) {
                    continue;
                }
                ACC v = (ACC)wp[k];
                const T *src = row + lo * stride + shift;
                ACC *dst = acc + (lo - from);
                if (stride == 1) {
                    for (int64_t j = 0; j < hi - lo; j++) {
                        dst[j] += v * (ACC)src[j];
                    }
                } else {
                    for (int64_t j = 0; j < hi - lo; j++) {
                        dst[j] += v * (ACC)src[j * stride];
                    }
                }
            }
        }
    }
}

static void NAME(conv_units)(void *user, int64_t begin, int64_t end, int thread)
{
    const conv_job *job = user;
    const nori__ref_conv_work *c = job->c;
    int last = c->w.n - 1;
    int64_t rows = nori__nn_product(c->out, 0, last), blocks = (c->out[last] + BLOCK - 1) / BLOCK;
    int64_t x_image = c->channels * nori__nn_product(c->in, 0, c->w.n);
    int64_t x_group = x_image / c->group;
    int64_t w_out = c->channels / c->group * nori__nn_product(c->w.kernel, 0, c->w.n);
    int64_t *offsets = job->lists + (size_t)thread * 2 * (size_t)job->positions;
    int64_t *places = offsets + job->positions;
    int64_t seen = -1, n_off = 0;
    for (int64_t u = begin; u < end; u++) {
        int64_t block = u % blocks, row = u / blocks % rows, o = u / blocks / rows;
        int64_t m = o % c->made, image = o / c->made;
        if (row != seen) {
            n_off = nori__nn_conv_places(c, row, offsets, places);
            seen = row;
        }
        ACC acc[BLOCK];
        int64_t from = block * BLOCK;
        int64_t count = c->out[last] - from < BLOCK ? c->out[last] - from : BLOCK;
        ACC start = c->bias ? (ACC)((const T *)c->bias)[m] : 0;
        for (int64_t j = 0; j < count; j++) {
            acc[j] = start;
        }
        NAME(conv_row)(c, from, count, offsets, n_off, places,
                       (const T *)c->x + image * x_image + m / (c->made / c->group) * x_group,
                       (const T *)c->weight + m * w_out, acc);
        T *y = (T *)c->y + (o * rows + row) * c->out[last] + from;
        for (int64_t j = 0; j < count; j++) {
            y[j] = (T)acc[j];
        }
    }
}
