// Owns the move-only handle over a C resource. Traits: `using Value`, `static Value none()`, `static void close(Value) noexcept`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace ptxb {

template <class Traits>
class Handle {
 public:
  using Value = typename Traits::Value;
  Handle() = default;
  explicit Handle(Value value) : value_(value) {}
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, Traits::none())) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) reset(std::exchange(other.value_, Traits::none()));
    return *this;
  }
  ~Handle() { reset(); }
  explicit operator bool() const { return value_ != Traits::none(); }
  Value get() const { return value_; }
  Value release() { return std::exchange(value_, Traits::none()); }
  void reset(Value value = Traits::none()) {
    if (value_ != Traits::none()) Traits::close(value_);
    value_ = value;
  }

 private:
  Value value_ = Traits::none();
};

}  // namespace ptxb
