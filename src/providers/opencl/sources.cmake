set(NORI_WITH_OPENCL AUTO CACHE STRING "the provider opencl: AUTO, ON or OFF")
set_property(CACHE NORI_WITH_OPENCL PROPERTY STRINGS AUTO ON OFF)
# Nothing is needed to build it: the loader is opened at run time.
if(NORI_WITH_OPENCL)
    nori_sources(
        ocl_cache.c
        ocl_device.c
        ocl_layout.c
        ocl_library.c
        ocl_memory.c
        ocl_ops.c
        ocl_options.c
        ocl_part.c
        ocl_probe.c
        ocl_program.c
        ocl_provider.c
        ocl_run.c
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
    set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/../providers.c PROPERTIES
        COMPILE_DEFINITIONS NORI_WITH_OPENCL)
else()
    message(STATUS "OpenCL turned off: the provider opencl is not there")
endif()
