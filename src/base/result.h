// Owns the one type of bad news (Error) and the value-or-error type (Result); never prints.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace ptxb {

// What kind of trouble: decides the exit code (BadInput, NotFound -> 2; the rest -> 3).
enum class ErrorCode {
  BadInput,     // what the user gave is wrong: usage, a malformed file, an unknown name
  NotFound,     // a named thing does not exist
  Unsupported,  // well-formed, but this build cannot do it; the message names it
  Limit,        // a budget was spent; the message says which one
  Io,           // the operating system refused
  Harness,      // our own tools are broken or missing (nvcc, worker, sandbox)
};

struct Error {
  ErrorCode code = ErrorCode::Harness;
  std::string message;
  // Adds context on the way up: "loading task gemm_n128_k2048: <message>".
  [[nodiscard]] Error in(std::string_view context) && {
    message.insert(0, std::string(context) + ": ");
    return std::move(*this);
  }
};

// Spelled like std::expected<T, Error>, so that it can be swapped for it later.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}   // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT
  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design
  explicit operator bool() const { return !error_; }
  bool has_value() const { return !error_; }
  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

inline Error bad_input(std::string message) { return {ErrorCode::BadInput, std::move(message)}; }
inline Error not_found(std::string message) { return {ErrorCode::NotFound, std::move(message)}; }
inline Error unsupported(std::string message) { return {ErrorCode::Unsupported, std::move(message)}; }
inline Error limit_error(std::string message) { return {ErrorCode::Limit, std::move(message)}; }
inline Error io_error(std::string message) { return {ErrorCode::Io, std::move(message)}; }
inline Error harness_error(std::string message) { return {ErrorCode::Harness, std::move(message)}; }

}  // namespace ptxb

#define PTXB_JOIN2(a, b) a##b
#define PTXB_JOIN(a, b) PTXB_JOIN2(a, b)
// PTXB_TRY(auto text, read_file(path)); returns the error to the caller, else declares the value.
#define PTXB_TRY(declaration, expression) PTXB_TRY2(declaration, expression, PTXB_JOIN(try_, __LINE__))
#define PTXB_TRY2(declaration, expression, name)   \
  auto name = (expression);                        \
  if (!name) return std::move(name).error();       \
  declaration = *std::move(name)
// PTXB_CHECK_OK(write_file(...)); for Result<void>, or to drop a value.
#define PTXB_CHECK_OK(expression)                                                  \
  do {                                                                             \
    if (auto try_result = (expression); !try_result) return std::move(try_result).error(); \
  } while (false)
// Our own broken invariants, also in release builds; never for input.
#define PTXB_CHECK(condition)                                                                   \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition);    \
      std::abort();                                                                             \
    }                                                                                           \
  } while (false)
