# The libraries that we link, all of them Debian packages (tools/packages.txt).
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(Protobuf REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)
find_package(simdjson REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
find_package(ZLIB REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(mimalloc REQUIRED)

# muster_allocator: malloc and free of a program are mimalloc's (docs/adr/0004). Only programs link
# it; the sanitizers bring their own.
add_library(muster_allocator INTERFACE)
if(NOT MUSTER_SANITIZE)
  target_link_libraries(muster_allocator INTERFACE mimalloc)
endif()

# Boost.Asio 1.74, callbacks only: C++20 coroutines are off limits (docs/adr/0001).
add_library(muster_asio INTERFACE)
target_link_libraries(muster_asio INTERFACE Boost::headers)
target_compile_definitions(muster_asio INTERFACE BOOST_ASIO_DISABLE_CO_AWAIT
                           BOOST_ASIO_NO_DEPRECATED)
