# 64-bit Arm Linux from another Debian: cmake --preset arm64; ctest then runs the tests in qemu. Needs
# gcc-aarch64-linux-gnu, qemu-user and, after `dpkg --add-architecture arm64`, libnanopb-dev:arm64
# and libcmocka-dev:arm64.
set(processor aarch64)
set(triplet aarch64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
