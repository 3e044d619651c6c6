set(avx2
    avx2_block.c
    avx2_gemm.c
    avx2_int8.c
    avx2_move.c
    avx2_product8.c
    avx2_recurrent.c
    avx2_quant.c
    avx2_unary.c
    avx2_vector.c
    avx2_window.c
)
nori_sources(${avx2})
nori_isa_flags(avx2 ${avx2})
set(avx512
    avx512_block.c
    avx512_product8.c
    avx512_gemm.c
    avx512_recurrent.c
    avx512_unary.c
    avx512_vector.c
)
nori_sources(${avx512})
nori_isa_flags(avx512 ${avx512})
if(CMAKE_SIZEOF_VOID_P EQUAL 8)
    nori_sources(amx_product8.c amx_quant.c)
    nori_isa_flags(amx amx_product8.c amx_quant.c)
endif()
