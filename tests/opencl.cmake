# Tests of the provider opencl. Where there is no device they are skipped; the first run compiles
# kernels, which PoCL keeps in a folder of the build.
if(NORI_WITH_OPENCL)
    nori_test(opencl_open fast test_opencl_open.c)
    foreach(kind fake lacking)
        add_library(${kind}_opencl MODULE fake_opencl.c)
        set_target_properties(${kind}_opencl PROPERTIES C_VISIBILITY_PRESET default)
        string(TOUPPER ${kind} name)
        target_compile_definitions(test_opencl_open PRIVATE ${name}_OPENCL="$<TARGET_FILE:${kind}_opencl>")
        add_dependencies(test_opencl_open ${kind}_opencl)
    endforeach()
    target_compile_definitions(lacking_opencl PRIVATE WITHOUT_FLUSH)
    nori_test(opencl full test_gpu_cases.c)
    nori_test(opencl_session full test_opencl_session.c)
    nori_test(opencl_joined full test_gpu_joined.c)
    target_link_libraries(test_opencl_joined PRIVATE m)
    set(tests opencl opencl_session opencl_joined)
    if(Python3_FOUND AND EXISTS ${NORI_SHARED_DIR}/models/index.tsv)
        set(run_opencl ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/run_models.py --list
            --nori $<TARGET_FILE:nori> --models ${NORI_SHARED_DIR}/models --timeout 900)
        add_test(NAME models_opencl COMMAND ${run_opencl} --provider opencl,cpu --large skip)
        add_test(NAME models_opencl_large COMMAND ${run_opencl} --provider opencl,cpu --large only)
        add_test(NAME models_opencl_half COMMAND ${run_opencl} --provider opencl:storage=fp16,cpu --large skip)
        set_tests_properties(models_opencl models_opencl_half PROPERTIES LABELS "full;models")
        set_tests_properties(models_opencl_large PROPERTIES LABELS "slow;models")
        list(APPEND tests models_opencl models_opencl_large models_opencl_half)
    endif()
    # One at a time: two processes that fill PoCL's folder at once were seen to fail.
    set_tests_properties(${tests} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 RESOURCE_LOCK pocl)
    set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT
        "POCL_CACHE_DIR=${PROJECT_BINARY_DIR}/pocl_cache"
        "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/lsan.supp:print_suppressions=0")
endif()
