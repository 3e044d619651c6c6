/* qmatmul.h: what the files of 8-bit matrix products share. linear: QLinearMatMul, else
 * MatMulInteger. */
#ifndef NORI_PROVIDERS_CPU_QMATMUL_H
#define NORI_PROVIDERS_CPU_QMATMUL_H

#include "providers/cpu/cpu.h"
#include "providers/reference/ref_nn.h"

/* Two computed operands (qmatmul_both.c); forms it does not take go to the reference kernel. */
size_t nori__qmatmul_both_bytes(bool linear, const nori_call *call);
nori_status nori__qmatmul_both(bool linear, nori_call *call);

/* Input i: one 8-bit zero point, or none (0). */
bool nori__qmatmul_zero(const nori_call *call, uint32_t i, int32_t *zero);
/* QLinearMatMul's scales and the result's zero point, with n columns or one scale. */
bool nori__qmatmul_linear(const nori_call *call, int64_t n);

#endif
