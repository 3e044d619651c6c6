/* ref_gemm_body.h: matrix product for one element type. Included with T, ACC, NAME(x) defined. A
 * unit of work is a block of at most BLOCK columns of one row of the result. */

static void NAME(product_units)(void *user, int64_t begin, int64_t end, int thread)
{
    const nori__ref_product_work *p = user;
    int64_t blocks = (p->n + BLOCK - 1) / BLOCK;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        int64_t block = u % blocks, m = u / blocks % p->m, matrix = u / blocks / p->m;
        const T *a = (const T *)p->a + m * p->a_row, *b = (const T *)p->b;
        for (int d = p->n_batch - 1; d >= 0; d--) {
            a += matrix % p->batch[d] * p->a_batch[d];
            b += matrix % p->batch[d] * p->b_batch[d];
            matrix /= p->batch[d];
        }
        int64_t from = block * BLOCK, count = p->n - from < BLOCK ? p->n - from : BLOCK;
        T *y = (T *)p->y + u / blocks * p->n + from;
        b += from * p->b_col;
        if (p->b_col == 1) {
            ACC acc[BLOCK];
            for (int64_t j = 0; j < count; j++) {
                acc[j] = 0;
            }
            for (int64_t k = 0; k < p->k; k++) {
                ACC v = (ACC)a[k * p->a_col];
                const T *row = b + k * p->b_row;
                for (int64_t j = 0; j < count; j++) {
                    acc[j] += v * (ACC)row[j];
                }
            }
            for (int64_t j = 0; j < count; j++) {
                y[j] = (T)acc[j];
            }
            continue;
        }
        for (int64_t j = 0; j < count; j++, b += p->b_col) {
            ACC s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            int64_t k = 0;
            for (; k + 4 <= p->k; k += 4) {
                s0 += (ACC)a[k * p->a_col] * (ACC)b[k * p->b_row];
                s1 += (ACC)a[(k + 1) * p->a_col] * (ACC)b[(k + 1) * p->b_row];
                s2 += (ACC)a[(k + 2) * p->a_col] * (ACC)b[(k + 2) * p->b_row];
                s3 += (ACC)a[(k + 3) * p->a_col] * (ACC)b[(k + 3) * p->b_row];
            }
            for (; k < p->k; k++) {
                s0 += (ACC)a[k * p->a_col] * (ACC)b[k * p->b_row];
            }
            y[j] = (T)((s0 + s1) + (s2 + s3));
        }
    }
}
