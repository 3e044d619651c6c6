# Tests of the provider cuda against a double of NVIDIA's libraries, which runs the kernels on the host: they
# are CUDA C, so a compiler of C++ is needed.
include(CheckLanguage)
check_language(CXX)
if(NORI_WITH_CUDA AND CMAKE_CXX_COMPILER)
    enable_language(CXX)
    foreach(kind cuda_double lacking_cuda)
        add_library(${kind} MODULE cuda_double.c cuda_double_code.c cuda_double_device.c cuda_kernels.cpp
            cuda_libraries_double.c cuda_made.c)
        set_target_properties(${kind} PROPERTIES C_VISIBILITY_PRESET default CXX_VISIBILITY_PRESET default
            CXX_STANDARD 14)
        target_include_directories(${kind} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
        target_link_libraries(${kind} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
        target_compile_definitions(${kind} PRIVATE DOUBLE_CXX="${CMAKE_CXX_COMPILER}"
            DOUBLE_INCLUDE="${CMAKE_CURRENT_SOURCE_DIR}")
    endforeach()
    target_compile_definitions(lacking_cuda PRIVATE WITHOUT_REPLAY WITHOUT_MATMUL)
    nori_test(cuda fast test_cuda.c)
    nori_test(cuda_cases fast test_gpu_cases.c)
    nori_test(cuda_joined fast test_gpu_joined.c)
    nori_test(cuda_libraries fast test_cuda_libraries.c)
    nori_test(cuda_cases_libraries fast test_gpu_cases.c)
    foreach(test cuda cuda_cases cuda_joined cuda_libraries cuda_cases_libraries)
        add_dependencies(test_${test} cuda_double lacking_cuda)
    endforeach()
    target_compile_definitions(test_cuda PRIVATE CUDA_DOUBLE="$<TARGET_FILE:cuda_double>"
        LACKING_CUDA="$<TARGET_FILE:lacking_cuda>")
    set(double "costs=none,lib=$<TARGET_FILE:cuda_double>,nvrtc=$<TARGET_FILE:cuda_double>")
    set(libraries "cublaslt=$<TARGET_FILE:cuda_double>,cudnn=$<TARGET_FILE:cuda_double>")
    target_compile_definitions(test_cuda_cases_libraries PRIVATE ON_CUDA="cuda:${double},${libraries}")
    foreach(test cuda_cases cuda_joined cuda_libraries)
        target_compile_definitions(test_${test} PRIVATE CUDA_DOUBLE="$<TARGET_FILE:cuda_double>"
            LACKING_CUDA="$<TARGET_FILE:lacking_cuda>"
            ON_CUDA="cuda:${double},cublaslt=none,cudnn=none")
        target_link_libraries(test_${test} PRIVATE m)
    endforeach()
elseif(NORI_WITH_CUDA)
    message(STATUS "no compiler of C++: the provider cuda is not tested")
endif()
