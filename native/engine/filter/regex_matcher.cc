#include "filter/regex_matcher.h"

#include <hs/hs_runtime.h>

#include <cassert>
#include <string>

#include "filter/regex_place.h"

namespace capfleet {
namespace {

/// Ends the scan and records where: further matches are irrelevant.
int stopAtMatch(unsigned, unsigned long long, unsigned long long end, unsigned, void* matchEnd) {
  *static_cast<size_t*>(matchEnd) = end;
  return 1;
}

}  // namespace

void FreeRegexScratch::operator()(hs_scratch* scratch) const { hs_free_scratch(scratch); }

Result<std::shared_ptr<const RegexMatcher>> RegexMatcher::load(std::span<const uint8_t> compiled) {
  const bool isMarked =
      !compiled.empty() && (compiled[0] == kRegexOfAnyPlace || compiled[0] == kRegexOfWholeText);
  const auto* const bytes = reinterpret_cast<const char*>(compiled.data());
  hs_database_t* database = nullptr;
  const hs_error_t status =
      isMarked ? hs_deserialize_database(bytes + 1, compiled.size() - 1, &database) : HS_INVALID;
  if (status != HS_SUCCESS) {
    return Error{Code::kBadRegex,
                 "the compiled regular expression is damaged or from another version"
                 " of Hyperscan (error " +
                     std::to_string(status) + ")"};
  }
  return std::shared_ptr<const RegexMatcher>(
      new RegexMatcher(database, compiled[0] == kRegexOfAnyPlace));
}

RegexMatcher::~RegexMatcher() { hs_free_database(database_); }

Result<RegexScratch> RegexMatcher::makeScratch() const {
  hs_scratch_t* scratch = nullptr;
  if (hs_alloc_scratch(database_, &scratch) != HS_SUCCESS) {
    return Error{Code::kBadRegex, "not enough memory to search with the regular expression"};
  }
  return RegexScratch(scratch);
}

bool RegexMatcher::matches(std::span<const uint8_t> captured, RegexScratch& scratch) const {
  return search(captured, scratch).has_value();
}

std::optional<size_t> RegexMatcher::firstMatchEnd(std::span<const uint8_t> text,
                                                  RegexScratch& scratch) const {
  assert(matchesAnywhere_);
  return search(text, scratch);
}

std::optional<size_t> RegexMatcher::search(std::span<const uint8_t> text,
                                           RegexScratch& scratch) const {
  // Hyperscan does not accept a null pointer, not even for an empty text.
  const char* bytes = text.empty() ? "" : reinterpret_cast<const char*>(text.data());
  size_t matchEnd = 0;
  const hs_error_t status = hs_scan(database_, bytes, static_cast<unsigned>(text.size()), 0,
                                    scratch.get(), stopAtMatch, &matchEnd);
  assert(status == HS_SUCCESS || status == HS_SCAN_TERMINATED);
  if (status == HS_SUCCESS) return std::nullopt;
  return matchEnd;
}

}  // namespace capfleet
