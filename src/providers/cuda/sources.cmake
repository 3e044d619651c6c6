if(NORI_WITH_CUDA)
    nori_sources(
        cuda_blas.c
        cuda_device.c
        cuda_dnn.c
        cuda_driver.c
        cuda_launch.c
        cuda_libraries.c
        cuda_library.c
        cuda_options.c
        cuda_program.c
        cuda_provider.c
    )
    nori_embed(cuda_kernels.h cuda_kernels ${CMAKE_CURRENT_LIST_DIR}/cuda_program.c
        ${CMAKE_CURRENT_LIST_DIR}/kernels/prelude.cu
        ${CMAKE_CURRENT_LIST_DIR}/kernels/conv_tiles.cu
        ${CMAKE_CURRENT_LIST_DIR}/kernels/gemm_tiles.cu)
    set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/../providers.c APPEND PROPERTY
        COMPILE_DEFINITIONS NORI_WITH_CUDA)
else()
    message(STATUS "CUDA turned off: the provider cuda is not there")
endif()
