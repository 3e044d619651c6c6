# 64-bit Arm Linux from another Debian: cmake --preset arm64; ctest then runs the tests in qemu. Needs
# gcc-aarch64-linux-gnu, qemu-user and, after `dpkg --add-architecture arm64`, libnanopb-dev:arm64
# and libcmocka-dev:arm64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu /)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
find_program(NORI_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(NORI_QEMU)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${NORI_QEMU} -L /usr/aarch64-linux-gnu)
endif()
