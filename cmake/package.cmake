# `make package`: a Debian package and an archive that runs from wherever it is unpacked. Both hold
# everything: command, libraries, headers, documents.
set(CPACK_PACKAGE_NAME nori)
set(CPACK_PACKAGE_VENDOR "nori developers")
set(CPACK_PACKAGE_CONTACT "nori developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run, check and measure ONNX models at the edge")
set(CPACK_PACKAGE_DESCRIPTION "nori loads ONNX models and runs them without Python. This package holds the
command, the shared and the static library, and the headers for C.")
set(CPACK_PACKAGE_FILE_NAME nori-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/package)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_RESOURCE_FILE_README ${PROJECT_SOURCE_DIR}/README.md)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# Loaded when a server is called.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4")
# Programs that link the static library need these; the others do not.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libnanopb-dev, zlib1g-dev")
include(CPack)
