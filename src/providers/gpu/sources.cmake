# Compiled with the drivers that use it.
if(NORI_WITH_OPENCL OR NORI_WITH_CUDA)
    nori_sources(
        gpu_cache.c
        gpu_layout.c
        gpu_memory.c
        gpu_ops.c
        gpu_part.c
        gpu_run.c
        gpu_source.c
        op_binary.c
        op_conv.c
        op_gemm.c
        op_move.c
        op_norm.c
        op_pool.c
        op_resize.c
        op_rows.c
        op_unary.c
    )
    include(${CMAKE_CURRENT_LIST_DIR}/kernels.cmake)
endif()
