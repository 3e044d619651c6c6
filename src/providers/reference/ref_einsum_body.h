/* ref_einsum_body.h: sums of products for one element type. Included with T, NAME(x) defined. */

/* The innermost summed label as one loop. */
static T NAME(einsum_line)(const einsum_job *j, const T *const *at, int64_t n)
{
    T sum = 0;
    if (j->e.operands == 1) {
        for (int64_t i = 0; i < n; i++) {
            sum += at[0][i * j->inner[0]];
        }
        return sum;
    }
    if (j->e.operands == 2) {
        for (int64_t i = 0; i < n; i++) {
            sum += at[0][i * j->inner[0]] * at[1][i * j->inner[1]];
        }
        return sum;
    }
    for (int64_t i = 0; i < n; i++) {
        T product = at[0][i * j->inner[0]];
        for (int o = 1; o < j->e.operands; o++) {
            product *= at[o][i * j->inner[o]];
        }
        sum += product;
    }
    return sum;
}

static void NAME(einsum_units)(void *user, int64_t begin, int64_t end, int thread)
{
    const einsum_job *j = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        const T *at[NORI__EINSUM_OPERANDS];
        int64_t rest = u, index[NORI__EINSUM_LABELS] = {0};
        for (int o = 0; o < j->e.operands; o++) {
            at[o] = (const T *)j->data[o];
        }
        for (int d = j->e.out_rank - 1; d >= 0; d--) {
            int64_t i = rest % j->e.size[j->e.out[d]];
            rest /= j->e.size[j->e.out[d]];
            for (int o = 0; o < j->e.operands; o++) {
                at[o] += i * j->stride[o][j->e.out[d]];
            }
        }
        T sum = 0;
        for (;;) {
            sum += NAME(einsum_line)(j, at, j->n_inner);
            int s = j->summed - 1;
            for (; s >= 0; s--) {
                int label = j->sums[s];
                int64_t back = ++index[s] < j->e.size[label] ? 0 : index[s];
                for (int o = 0; o < j->e.operands; o++) {
                    at[o] += j->stride[o][label] * (1 - back);
                }
                if (back == 0) {
                    break;
                }
                index[s] = 0;
            }
            if (s < 0) {
                break;
            }
        }
        ((T *)j->out)[u] = sum;
    }
}
