// FilterRE: whether a packet's bytes match a regular expression that capfleet-regex-compile has
// compiled (regex_compile_main.cc). Time and memory per byte are bounded whatever the pattern is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "os/result.h"

struct hs_database;
struct hs_scratch;

namespace capfleet {

struct FreeRegexScratch {
  void operator()(hs_scratch* scratch) const;
};

/// Working memory for the packets of one thread or scan, created by the matcher that it is used
/// with.
using RegexScratch = std::unique_ptr<hs_scratch, FreeRegexScratch>;

/// Immutable, so any number of threads may share one, each with its own scratch.
class RegexMatcher {
 public:
  /// `compiled` must come from the compile helper of this installation: the version, platform and
  /// checksum of its database are checked, its contents trusted. A pattern that compromises the
  /// helper could forge a database, and thereby compromise this process. Compiling the pattern
  /// again in this process would not help, because it would then exploit the same bug of the
  /// compiler here. So the helper cannot do anything else (compile_limits.h). Fails with kBadRegex.
  static Result<std::shared_ptr<const RegexMatcher>> load(std::span<const uint8_t> compiled);
  ~RegexMatcher();
  RegexMatcher(const RegexMatcher&) = delete;
  RegexMatcher& operator=(const RegexMatcher&) = delete;

  /// Fails with kBadRegex if there is no memory for it.
  Result<RegexScratch> makeScratch() const;

  /// Whether the pattern matches anywhere in `captured`. A pattern that matches the empty string
  /// matches every packet.
  bool matches(std::span<const uint8_t> captured, RegexScratch& scratch) const;

  /// Whether firstMatchEnd() may be called.
  bool matchesAnywhere() const { return matchesAnywhere_; }
  /// Where the first match in `text` ends, or nullopt if there is none. A packet in `text` that
  /// ends before that contains no match, and without a match no packet in it does; the packet
  /// around that place may. Much faster than matching packets one by one. REQUIRES:
  /// matchesAnywhere().
  std::optional<size_t> firstMatchEnd(std::span<const uint8_t> text, RegexScratch& scratch) const;

 private:
  RegexMatcher(hs_database* database, bool matchesAnywhere)
      : database_(database), matchesAnywhere_(matchesAnywhere) {}
  std::optional<size_t> search(std::span<const uint8_t> text, RegexScratch& scratch) const;
  hs_database* database_;
  const bool matchesAnywhere_;
};

}  // namespace capfleet
