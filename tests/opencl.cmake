# Tests of the provider opencl. Where there is no device they are skipped; the first run compiles
# kernels, which PoCL keeps in a folder of the build.
if(NORI_WITH_OPENCL)
    nori_test(opencl_open fast test_opencl_open.c)
    add_library(fake_opencl MODULE fake_opencl.c)
    set_target_properties(fake_opencl PROPERTIES C_VISIBILITY_PRESET default)
    add_dependencies(test_opencl_open fake_opencl lacking_provider)
    target_compile_definitions(test_opencl_open PRIVATE FAKE_OPENCL="$<TARGET_FILE:fake_opencl>"
        LACKING_PROVIDER="$<TARGET_FILE:lacking_provider>")
    nori_test(opencl full test_opencl.c)
    nori_test(opencl_session full test_opencl_session.c)
    set(tests opencl opencl_session)
    if(Python3_FOUND AND EXISTS ${NORI_SHARED_DIR}/models/index.tsv)
        set(run_opencl ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/run_opencl.py
            --nori $<TARGET_FILE:nori> --models ${NORI_SHARED_DIR}/models --timeout 900)
        add_test(NAME models_opencl COMMAND ${run_opencl})
        add_test(NAME models_opencl_half COMMAND ${run_opencl} --half)
        set_tests_properties(models_opencl models_opencl_half PROPERTIES LABELS "full;models")
        list(APPEND tests models_opencl models_opencl_half)
    endif()
    set_tests_properties(${tests} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800)
    set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT
        "POCL_CACHE_DIR=${PROJECT_BINARY_DIR}/pocl_cache")
endif()
