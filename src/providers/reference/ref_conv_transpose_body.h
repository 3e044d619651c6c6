/* ref_conv_transpose_body.h: transposed convolution for one element type, gathered by output row so
 * that sums stay in double and rows are independent. Included with T, NAME(x) defined. */

static void NAME(transpose_row)(const nori__ref_conv_work *c, const T *row, const T *wp,
                                double *acc)
{
    int last = c->w.n - 1;
    int64_t stride = c->w.stride[last], out = c->out[last], in = c->in[last];
    for (int64_t k = 0; k < c->w.kernel[last]; k++) {
        int64_t shift = k * c->w.dilation[last] - c->w.begin[last];
        /* Inputs j in [lo, hi) land inside the row: 0 <= j * stride + shift < out. */
        int64_t lo = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
        int64_t hi = out - 1 - shift < 0 ? 0 : (out - 1 - shift) / stride + 1;
        hi = hi < in ? hi : in;
        double v = (double)wp[k];
        for (int64_t j = lo; j < hi; j++) {
            acc[j * stride + shift] += v * (double)row[j];
        }
    }
}

static void NAME(transpose_units)(void *user, int64_t begin, int64_t end, int thread)
{
    const transpose_job *job = user;
    const nori__ref_conv_work *c = job->c;
    int last = c->w.n - 1;
    int64_t rows = nori__nn_product(c->out, 0, last), out = c->out[last];
    int64_t x_channel = nori__nn_product(c->in, 0, c->w.n);
    int64_t w_made = nori__nn_product(c->w.kernel, 0, c->w.n);
    int64_t per_group = c->channels / c->group, made = c->made / c->group;
    int64_t *offsets = job->lists + (size_t)thread * 2 * (size_t)job->positions;
    int64_t *places = offsets + job->positions;
    double *acc = job->acc + (size_t)thread * (size_t)out;
    for (int64_t u = begin; u < end; u++) {
        int64_t row = u % rows, m = u / rows % c->made, image = u / rows / c->made;
        int64_t group = m / made, n = transpose_places(c, row, offsets, places);
        double start = c->bias ? (double)((const T *)c->bias)[m] : 0;
        for (int64_t j = 0; j < out; j++) {
            acc[j] = start;
        }
        for (int64_t ic = 0; ic < per_group; ic++) {
            int64_t channel = group * per_group + ic;
            const T *x = (const T *)c->x + (image * c->channels + channel) * x_channel;
            const T *weight = (const T *)c->weight + (channel * made + m % made) * w_made;
            for (int64_t p = 0; p < n; p++) {
                NAME(transpose_row)(c, x + offsets[p], weight + places[p], acc);
            }
        }
        T *y = (T *)c->y + u * out;
        for (int64_t j = 0; j < out; j++) {
            y[j] = (T)acc[j];
        }
    }
}
