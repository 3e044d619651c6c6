# What `cmake --install` puts where: command, libraries, headers, man page, shell completion, and what
# lets CMake and pkg-config find the libraries.
if(NORI_TOOLS)
    install(TARGETS nori RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/nori DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES README.md ARCHITECTURE.md CHANGELOG.md SECURITY.md LICENSE
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright) # where Debian looks
install(DIRECTORY examples/embed examples/trace DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# ---- man page and completion: the command itself says what they hold ----
if(NOT NORI_TOOLS)
    message(STATUS "no tools: no command, no man page and no shell completion")
elseif(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    message(STATUS "cross-compiling without an emulator: no man page and no shell completion")
else()
    find_package(Python3 COMPONENTS Interpreter QUIET)
    set(made)
    add_custom_command(OUTPUT nori.bash COMMAND nori completion bash > nori.bash DEPENDS nori VERBATIM)
    list(APPEND made nori.bash)
    install(FILES ${PROJECT_BINARY_DIR}/nori.bash RENAME nori
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    if(Python3_FOUND)
        add_custom_command(OUTPUT nori.1
            COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/gen_man.py nori.1
                ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:nori>
            DEPENDS nori tools/gen_man.py VERBATIM)
        list(APPEND made nori.1)
        install(FILES ${PROJECT_BINARY_DIR}/nori.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    else()
        message(STATUS "python3 not found: no man page")
    endif()
    add_custom_target(nori_documents ALL DEPENDS ${made})
endif()

# ---- CMake package ----
# Two export sets: who links the shared library need not have what the static one is built on.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/nori)
install(TARGETS nori_static EXPORT noriStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT noriStaticTargets NAMESPACE nori:: DESTINATION ${package_dir})
if(NORI_SHARED)
    install(TARGETS nori_shared EXPORT noriSharedTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT noriSharedTargets NAMESPACE nori:: DESTINATION ${package_dir})
endif()
set(NORI_STATIC_PACKAGES nanopb Threads)
set(NORI_PC_REQUIRES)
foreach(name ${NORI_LIBRARY_USES})
    if(NORI_${name}_TARGET)
        list(APPEND NORI_STATIC_PACKAGES ${NORI_${name}_PACKAGE})
        list(APPEND NORI_PC_REQUIRES ${NORI_${name}_PC})
    endif()
endforeach()
configure_package_config_file(cmake/noriConfig.cmake.in noriConfig.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(noriConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/noriConfig.cmake ${PROJECT_BINARY_DIR}/noriConfigVersion.cmake
    cmake/nori_export.cmake
    DESTINATION ${package_dir})

# ---- pkg-config ----
# The prefix is found from where the file lies, so an unpacked archive works anywhere.
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE libdir)
file(RELATIVE_PATH NORI_PC_PREFIX ${libdir}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" NORI_PC_PREFIX "${NORI_PC_PREFIX}")
list(JOIN NORI_PC_REQUIRES " " NORI_PC_REQUIRES)
set(NORI_PC_LIBS "-lprotobuf-nanopb -lm ${CMAKE_THREAD_LIBS_INIT}")
if(CMAKE_DL_LIBS)
    string(APPEND NORI_PC_LIBS " -l${CMAKE_DL_LIBS}")
endif()
configure_file(cmake/nori.pc.in nori.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/nori.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET nori_serve)
    configure_file(cmake/nori_serve.pc.in nori_serve.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/nori_serve.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
