// FilterRE: whether a packet's bytes match a regular expression that capfleet-regex-compile has
// compiled (regex_compile_main.cc). Time and memory per byte are bounded whatever the pattern is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "os/result.h"

struct hs_database;
struct hs_scratch;

namespace capfleet {

struct FreeRegexScratch {
  void operator()(hs_scratch* scratch) const;
};

/// Working memory for the packets of one thread or scan, made by the matcher that it is used with.
using RegexScratch = std::unique_ptr<hs_scratch, FreeRegexScratch>;

/// Immutable, so any number of threads may share one, each with its own scratch.
class RegexMatcher {
 public:
  /// `serializedDatabase` must come from the compile helper of this installation: its version,
  /// platform and checksum are checked, its contents trusted. Fails with kBadRegex.
  static Result<std::shared_ptr<const RegexMatcher>> load(
      std::span<const uint8_t> serializedDatabase);
  ~RegexMatcher();
  RegexMatcher(const RegexMatcher&) = delete;
  RegexMatcher& operator=(const RegexMatcher&) = delete;

  /// Fails with kBadRegex when there is no memory for it.
  Result<RegexScratch> makeScratch() const;

  /// Whether the pattern matches anywhere in `captured`; a pattern that matches the empty text
  /// matches every packet.
  bool matches(std::span<const uint8_t> captured, RegexScratch& scratch) const;

 private:
  explicit RegexMatcher(hs_database* database) : database_(database) {}
  hs_database* database_;
};

}  // namespace capfleet
