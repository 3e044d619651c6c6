if(NORI_WITH_OPENCL)
    nori_sources(
        ocl_binary.c
        ocl_device.c
        ocl_driver.c
        ocl_library.c
        ocl_options.c
        ocl_probe.c
        ocl_program.c
        ocl_provider.c
    )
    set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/../providers.c APPEND PROPERTY
        COMPILE_DEFINITIONS NORI_WITH_OPENCL)
else()
    message(STATUS "OpenCL turned off: the provider opencl is not there")
endif()
