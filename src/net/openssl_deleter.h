// src/net/openssl_deleter.h
//
// Deleter<X_free>: for a std::unique_ptr that owns an object of OpenSSL's.

#pragma once

namespace muster::net {

template <auto kFree>
struct OpensslDeleter {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

}  // namespace muster::net
