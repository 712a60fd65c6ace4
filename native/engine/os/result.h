// Results instead of exceptions: anything that can fail because of input, disk or memory limits
// returns a Result; an impossible state is an assert. No exception leaves engine/.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace capfleet {

/// The kinds of failure the engine reports. binding/ maps each to the error code of the same name
/// in src/shared/base/error.ts (kBadBpf -> "bad-bpf").
enum class Code {
  kBadParameter,        ///< an argument is outside its documented range
  kBadBpf,              ///< the filter program or expression is not acceptable
  kBadRegex,            ///< the compiled regular expression is not acceptable
  kMixedLinkType,       ///< the chosen streams do not share one link type
  kStoreUnavailable,    ///< the store cannot be read or written (errno in the message)
  kAgedOut,             ///< a segment was removed to make room, before or while it was read
  kStoreCorrupt,        ///< an index or segment file contradicts its checksum or format
  kStoreFull,           ///< no space left on the device of the store
  kBadCaptureFile,      ///< an import's input is not a capture file at all
  kCaptureUnavailable,  ///< privileges, interface or kernel do not let us capture
  kCancelled,           ///< the caller closed the object
};

struct Error {
  Code code;
  std::string message;  ///< one English sentence without a final full stop
};

/// Either a value or an Error. Test it before use.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const noexcept { return state_.index() == 0; }
  T& operator*() noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const noexcept { return *std::get_if<0>(&state_); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }
  const Error& error() const noexcept { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

/// The result of an operation that returns nothing but may fail.
using Status = Result<std::monostate>;
inline Status ok() { return std::monostate{}; }

}  // namespace capfleet
