set(base
    base_block.c
    base_gemm.c
    base_int8.c
    base_move.c
    base_product8.c
    base_recurrent.c
    base_quant.c
    base_unary.c
    base_vector.c
    base_window.c
    kernels.c
)
nori_sources(${base})
list(TRANSFORM base PREPEND ${CMAKE_CURRENT_LIST_DIR}/ OUTPUT_VARIABLE NORI_BASE_KERNELS)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|i.86")
    include(${CMAKE_CURRENT_LIST_DIR}/x86/sources.cmake)
endif()
