# The libraries nori is built on. Two must be there; each of the others is an option
# NORI_WITH_<NAME>: AUTO uses it where it is found, ON fails without it, OFF leaves it out.
find_package(Threads REQUIRED)
find_package(nanopb REQUIRED)

# nori_optional(NAME PACKAGE TARGET PC LOST): PACKAGE is what find_package() looks for, TARGET what
# it then offers, PC the name pkg-config knows it by, LOST what cannot be done without it.
function(nori_optional name package target pc lost)
    set(NORI_WITH_${name} AUTO CACHE STRING "use ${pc}: AUTO, ON or OFF")
    set_property(CACHE NORI_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
    set(why "not found")
    if(NORI_WITH_${name} STREQUAL "AUTO")
        find_package(${package} QUIET)
    elseif(NORI_WITH_${name})
        find_package(${package} REQUIRED)
    else()
        set(why "turned off")
    endif()
    if(NOT NORI_WITH_${name} OR NOT TARGET ${target})
        message(STATUS "${pc} ${why}: ${lost}")
        set(target "")
    endif()
    set(NORI_${name}_TARGET "${target}" PARENT_SCOPE)
    set(NORI_${name}_PACKAGE "${package}" PARENT_SCOPE)
    set(NORI_${name}_PC "${pc}" PARENT_SCOPE)
endfunction()

# nori_optional_plain(NAME HEADER LIBRARY PC LOST FOLDERS...): the same for libraries that bring no
# CMake package; FOLDERS are subfolders the header may lie in.
function(nori_optional_plain name header library pc lost)
    set(NORI_WITH_${name} AUTO CACHE STRING "use ${pc}: AUTO, ON or OFF")
    set_property(CACHE NORI_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
    set(target "")
    set(why "turned off")
    if(NORI_WITH_${name})
        set(why "not found")
        find_path(NORI_${name}_INCLUDE ${header} PATH_SUFFIXES ${ARGN})
        find_library(NORI_${name}_LIBRARY ${library})
        mark_as_advanced(NORI_${name}_INCLUDE NORI_${name}_LIBRARY)
        if(NORI_${name}_INCLUDE AND NORI_${name}_LIBRARY)
            set(target nori_with_${name})
            add_library(${target} INTERFACE)
            target_include_directories(${target} SYSTEM INTERFACE ${NORI_${name}_INCLUDE})
            target_link_libraries(${target} INTERFACE ${NORI_${name}_LIBRARY})
        elseif(NOT NORI_WITH_${name} STREQUAL "AUTO")
            message(FATAL_ERROR "${pc} not found, but NORI_WITH_${name} is ${NORI_WITH_${name}}")
        endif()
    endif()
    if(NOT target)
        message(STATUS "${pc} ${why}: ${lost}")
    endif()
    set(NORI_${name}_TARGET "${target}" PARENT_SCOPE)
endfunction()

# nori_use(TARGET NAME): builds TARGET with an optional library, and tells its code so by the macro
# NORI_WITH_<NAME>, where the library is there.
function(nori_use user name)
    if(NORI_${name}_TARGET)
        target_compile_definitions(${user} PRIVATE NORI_WITH_${name})
        target_link_libraries(${user} PRIVATE ${NORI_${name}_TARGET})
    endif()
endfunction()

# What goes over the network would need its numbers turned, which is not written.
if(CMAKE_C_BYTE_ORDER STREQUAL "BIG_ENDIAN")
    message(STATUS "a big-endian machine: there is no `nori serve`, and servers cannot be called")
    set(NORI_WITH_CURL OFF)
    set(NORI_WITH_MICROHTTPD OFF)
endif()

nori_optional(ZLIB ZLIB ZLIB::ZLIB zlib "gzipped tensor files (.pb.gz) cannot be read")
nori_optional(PNG PNG PNG::PNG libpng "PNG pictures cannot be inputs of `nori run`, nor of ImageDecoder")
nori_optional(JPEG JPEG JPEG::JPEG libjpeg "JPEG pictures cannot be inputs of `nori run`")

# Libraries of the command that calls servers, and reads what it measured (cli/remote, cli/place).
# libcurl is loaded when a server is called, as it brings many others: its headers are what a build needs.
nori_optional_plain(CURL curl/curl.h curl libcurl "`nori profile --cloud` and `nori route` cannot call a server")
nori_optional_plain(JANSSON jansson.h jansson jansson "profiles cannot be read, servers cannot be called, and there is no `nori serve`")

# Libraries of operator modules (src/providers/modules).
nori_optional_plain(TURBOJPEG turbojpeg.h turbojpeg libturbojpeg "ImageDecoder cannot decode JPEG")
nori_optional_plain(TIFF tiffio.h tiff libtiff-4 "ImageDecoder cannot decode TIFF")
nori_optional_plain(WEBP webp/decode.h webp libwebp "ImageDecoder cannot decode WebP")
nori_optional_plain(OPENJPEG openjpeg.h openjp2 libopenjp2 "ImageDecoder cannot decode JPEG 2000"
    openjpeg-2.5 openjpeg-2.4 openjpeg-2.3)
nori_optional_plain(PCRE2 pcre2.h pcre2-8 libpcre2-8 "RegexFullMatch cannot run")

# Of the server (src/tools/serve): a library of its own and a module, loaded when it is asked for.
nori_optional_plain(MICROHTTPD microhttpd.h microhttpd libmicrohttpd "there is no `nori serve`")
nori_optional_plain(SODIUM sodium.h sodium libsodium
    "`nori sign`, `verify` and `seal` cannot work, nor sealed models be opened")

# The module of the command for mpirun (cli/shrink/ranks_mpi.c): off unless asked for, as packages of it
# would need MPI.
set(NORI_WITH_MPI OFF CACHE STRING "use MPI: AUTO, ON or OFF")
nori_optional(MPI MPI MPI::MPI_C mpi-c "mpirun cannot spread `nori calibrate` (--part and --merge can)")

# XNNPACK: the provider xnnpack (src/providers/xnnpack) calls it as it was in 2022, and loads it when
# asked for, so that its headers are all that a build needs.
set(NORI_WITH_XNNPACK AUTO CACHE STRING "use XNNPACK: AUTO, ON or OFF")
set_property(CACHE NORI_WITH_XNNPACK PROPERTY STRINGS AUTO ON OFF)
set(NORI_XNNPACK_INCLUDE_DIRS)
set(why "turned off")
if(NORI_WITH_XNNPACK)
    set(why "not found, or not of 2022 (Debian 12: libxnnpack-dev, libpthreadpool-dev)")
    find_path(NORI_XNNPACK_INCLUDE xnnpack.h)
    find_path(NORI_PTHREADPOOL_INCLUDE pthreadpool.h)
    mark_as_advanced(NORI_XNNPACK_INCLUDE NORI_PTHREADPOOL_INCLUDE)
    if(NORI_XNNPACK_INCLUDE AND NORI_PTHREADPOOL_INCLUDE)
        include(CheckCSourceCompiles)
        set(CMAKE_REQUIRED_INCLUDES ${NORI_XNNPACK_INCLUDE} ${NORI_PTHREADPOOL_INCLUDE})
        set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
        check_c_source_compiles("#include <xnnpack.h>
            enum xnn_status f(xnn_operator_t *op)
            {
                return xnn_create_fully_connected_nc_f32(1, 1, 1, 1, 0, 0, 0, 0, 0, op) ||
                       xnn_setup_convolution2d_nhwc_qc8(*op, 1, 1, 1, 0, 0, 0)
                           ? xnn_status_invalid_state : xnn_status_success;
            }" NORI_XNNPACK_OF_2022)
        unset(CMAKE_REQUIRED_INCLUDES)
        unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
    endif()
    if(NORI_XNNPACK_OF_2022)
        set(NORI_XNNPACK_INCLUDE_DIRS ${NORI_XNNPACK_INCLUDE} ${NORI_PTHREADPOOL_INCLUDE})
        list(REMOVE_DUPLICATES NORI_XNNPACK_INCLUDE_DIRS)
    elseif(NOT NORI_WITH_XNNPACK STREQUAL "AUTO")
        message(FATAL_ERROR "XNNPACK ${why}, but NORI_WITH_XNNPACK is ${NORI_WITH_XNNPACK}")
    endif()
endif()
if(NOT NORI_XNNPACK_INCLUDE_DIRS)
    message(STATUS "XNNPACK ${why}: there is no provider xnnpack")
endif()
