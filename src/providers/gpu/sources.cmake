# Compiled with the drivers that use it, none of which needs anything to be built: libraries are opened
# at run time.
set(NORI_WITH_OPENCL AUTO CACHE STRING "the provider opencl: AUTO, ON or OFF")
set(NORI_WITH_CUDA AUTO CACHE STRING "the provider cuda: AUTO, ON or OFF")
set_property(CACHE NORI_WITH_OPENCL NORI_WITH_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NORI_WITH_OPENCL OR NORI_WITH_CUDA)
    nori_sources(
        gpu_cache.c
        gpu_kernel.c
        gpu_layout.c
        gpu_life.c
        gpu_memory.c
        gpu_ops.c
        gpu_options.c
        gpu_part.c
        gpu_run.c
        gpu_source.c
        op_attention.c
        op_binary.c
        op_chain.c
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
    set(sources common elementwise conv gemm pool rows move attention)
    list(TRANSFORM sources REPLACE "(.+)" "${CMAKE_CURRENT_LIST_DIR}/kernels/\\1.cl")
    nori_embed(gpu_kernels.h gpu_kernels ${CMAKE_CURRENT_LIST_DIR}/gpu_source.c ${sources})
endif()
