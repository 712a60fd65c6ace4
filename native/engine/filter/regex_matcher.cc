#include "filter/regex_matcher.h"

#include <hs/hs_runtime.h>

#include <cassert>
#include <string>

namespace capfleet {
namespace {

/// Ends the scan: where else the pattern matches does not matter.
int stopAtMatch(unsigned, unsigned long long, unsigned long long, unsigned, void*) { return 1; }

}  // namespace

void FreeRegexScratch::operator()(hs_scratch* scratch) const { hs_free_scratch(scratch); }

Result<std::shared_ptr<const RegexMatcher>> RegexMatcher::load(
    std::span<const uint8_t> serializedDatabase) {
  hs_database_t* database = nullptr;
  const hs_error_t status =
      hs_deserialize_database(reinterpret_cast<const char*>(serializedDatabase.data()),
                              serializedDatabase.size(), &database);
  if (status != HS_SUCCESS) {
    return Error{Code::kBadRegex,
                 "the compiled regular expression is damaged or of another version"
                 " of Hyperscan (error " +
                     std::to_string(status) + ")"};
  }
  return std::shared_ptr<const RegexMatcher>(new RegexMatcher(database));
}

RegexMatcher::~RegexMatcher() { hs_free_database(database_); }

Result<RegexScratch> RegexMatcher::makeScratch() const {
  hs_scratch_t* scratch = nullptr;
  if (hs_alloc_scratch(database_, &scratch) != HS_SUCCESS) {
    return Error{Code::kBadRegex, "there is no memory to search with the regular expression"};
  }
  return RegexScratch(scratch);
}

bool RegexMatcher::matches(std::span<const uint8_t> captured, RegexScratch& scratch) const {
  // Hyperscan takes no null pointer, not even for an empty text.
  const char* text = captured.empty() ? "" : reinterpret_cast<const char*>(captured.data());
  const hs_error_t status = hs_scan(database_, text, static_cast<unsigned>(captured.size()), 0,
                                    scratch.get(), stopAtMatch, nullptr);
  assert(status == HS_SUCCESS || status == HS_SCAN_TERMINATED);
  return status == HS_SCAN_TERMINATED;
}

}  // namespace capfleet
