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

/// Working memory for the packets of one thread or scan, made by the matcher that it is used with.
using RegexScratch = std::unique_ptr<hs_scratch, FreeRegexScratch>;

/// Immutable, so any number of threads may share one, each with its own scratch.
class RegexMatcher {
 public:
  /// `compiled` must come from the compile helper of this installation: the version, platform and
  /// checksum of its database are checked, its contents trusted. A pattern that took the helper
  /// over could make up a database, and by it take this process over. Compiling the pattern once
  /// more in this process would be no remedy: the pattern would then meet the same defect of the
  /// compiler here, at once. So the helper can do nothing else (compile_limits.h). Fails with
  /// kBadRegex.
  static Result<std::shared_ptr<const RegexMatcher>> load(std::span<const uint8_t> compiled);
  ~RegexMatcher();
  RegexMatcher(const RegexMatcher&) = delete;
  RegexMatcher& operator=(const RegexMatcher&) = delete;

  /// Fails with kBadRegex when there is no memory for it.
  Result<RegexScratch> makeScratch() const;

  /// Whether the pattern matches anywhere in `captured`; a pattern that matches the empty text
  /// matches every packet.
  bool matches(std::span<const uint8_t> captured, RegexScratch& scratch) const;

  /// Whether firstMatchEnd() may be asked.
  bool matchesAnywhere() const { return matchesAnywhere_; }
  /// Where the first match in `text` ends, or nullopt when there is none. A packet in `text` that
  /// ends before holds no match, and without any no packet in it does; the packet around that place
  /// may. Much faster than one packet after the other. REQUIRES: matchesAnywhere().
  std::optional<size_t> firstMatchEnd(std::span<const uint8_t> text, RegexScratch& scratch) const;

 private:
  RegexMatcher(hs_database* database, bool matchesAnywhere)
      : database_(database), matchesAnywhere_(matchesAnywhere) {}
  std::optional<size_t> search(std::span<const uint8_t> text, RegexScratch& scratch) const;
  hs_database* database_;
  const bool matchesAnywhere_;
};

}  // namespace capfleet
