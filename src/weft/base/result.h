// weft/base/result.h -- the return type of functions that can fail.
//
//   Result<Plan> bind(std::string_view text);
//   WEFT_TRY(plan, bind(text));         // returns the error from here, or declares `plan`
//   WEFT_TRY_STATUS(verify(plan));      // the same for a Status
//
// An Error is caused by the user (a wrong statement) or the environment (a lost peer, a full disk).
// Bugs in Weft are not errors but InternalError: see check.h.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "weft/base/check.h"

namespace weft {

// A range of source text, in bytes. A length of zero means "no position known".
struct Span {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;

  bool known() const { return length != 0; }
  friend bool operator==(const Span&, const Span&) = default;
};

// The cause of an error. The values are the program's exit codes.
enum class Fault : std::uint8_t { user = 1, world = 2 };

struct Error {
  Fault fault = Fault::user;
  std::string message;  // lower case, no final period, values last
  std::string hint;     // one suggestion, or empty
  Span span;            // position in the parsed text, if any
  // The text that `span` refers to, if it is not the caller's: for example, the definition of a
  // layer that a statement uses.
  std::shared_ptr<const std::string> text = nullptr;
};

inline Error user_error(std::string message, std::string hint = {}, Span span = {}) {
  return Error{Fault::user, std::move(message), std::move(hint), span, nullptr};
}

inline Error environment_error(std::string message, std::string hint = {}) {
  return Error{Fault::world, std::move(message), std::move(hint), {}, nullptr};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    WEFT_CHECK(ok(), std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  const T& value() const& {
    WEFT_CHECK(ok(), std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  T&& value() && {
    WEFT_CHECK(ok(), std::get<1>(state_).message);
    return std::move(std::get<0>(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    WEFT_CHECK(!ok());
    return std::get<1>(state_);
  }
  Error&& error() && {
    WEFT_CHECK(!ok());
    return std::get<1>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  // Not defaulted: `return {}` would zero the storage of the error. Reading the result would then
  // stall until these stores, and all earlier ones, have reached the cache.
  Result() {}
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }

  const Error& error() const& {
    WEFT_CHECK(!ok());
    return *error_;
  }
  Error&& error() && {
    WEFT_CHECK(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace weft

#define WEFT_CONCAT_INNER(a, b) a##b
#define WEFT_CONCAT(a, b) WEFT_CONCAT_INNER(a, b)
#define WEFT_TRY_IMPL(holder, name, expression)       \
  auto holder = (expression);                         \
  if (!holder.ok()) return std::move(holder).error(); \
  auto name = std::move(holder).value()

// Declares `name` as the value of `expression`, or returns its error from the enclosing function.
#define WEFT_TRY(name, expression) WEFT_TRY_IMPL(WEFT_CONCAT(result_, __LINE__), name, expression)

// Returns the error of `expression`, if any, from the enclosing function.
#define WEFT_TRY_STATUS(expression) WEFT_TRY_STATUS_IMPL(WEFT_CONCAT(status_, __LINE__), expression)
#define WEFT_TRY_STATUS_IMPL(holder, expression) \
  if (auto holder = (expression); !holder.ok()) return std::move(holder).error()
