// capfleet-regex-compile: turns a regular expression (PCRE syntax as far as Hyperscan has it) into
// a Hyperscan database that tells whether a packet matches.
//
// Hyperscan's compiler can need much time and memory for a short pattern, so it runs here, in a
// process of its own that limits itself before it reads the pattern and that its caller may kill at
// any time. A pattern that would search slowly is refused: downloads share the machine.
//
//   stdin   the pattern (1 byte to 1 KiB) until end of file. It is searched in bytes: `.` is any
//           byte, a character beyond ASCII stands for its UTF-8 bytes, options are set inside the
//           pattern ("(?i)...")
//   stdout  one byte, which is kRegexOfAnyPlace or kRegexOfWholeText (regex_place.h), and the
//           serialized database, at most 8 MiB; exit status 0
//   stderr  one line, Hyperscan's message; exit status 1
#include <hs/hs.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "filter/compile_limits.h"
#include "filter/regex_place.h"
#include "filter/regex_search_rate.h"

namespace capfleet {
namespace {

constexpr uint32_t kCpuSeconds = 1;
constexpr size_t kMaxPatternBytes = 1024;
constexpr size_t kMaxDatabaseBytes = size_t{8} << 20;
/// Typical patterns reach twice as much, even on a busy machine.
constexpr double kLeastBytesPerSecond = 100e6;

/// One match suffices, a line feed is an ordinary byte, and a pattern that can match the empty text
/// matches every packet, as with grep.
constexpr unsigned kFlags = HS_FLAG_DOTALL | HS_FLAG_SINGLEMATCH | HS_FLAG_ALLOWEMPTY;

struct Free {
  void operator()(hs_database_t* database) const { hs_free_database(database); }
  void operator()(hs_compile_error_t* error) const { hs_free_compile_error(error); }
  void operator()(hs_expr_info_t* info) const { std::free(info); }
  void operator()(char* bytes) const { std::free(bytes); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

int fail(std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

/// Reads all of stdin, but at most one byte more than allowed.
std::string readPattern() {
  std::string pattern(kMaxPatternBytes + 1, '\0');
  pattern.resize(std::fread(pattern.data(), 1, pattern.size(), stdin));
  return pattern;
}

/// Where a match may lie. For kRegexOfAnyPlace the pattern must contain nothing that depends on the
/// text around a match, and its matches must be found in order, so that the first one found ends
/// first. Anything that may be an assertion counts as one: a caret in a class is not distinguished
/// from an anchor.
char placeOf(const std::string& pattern) {
  hs_expr_info_t* info = nullptr;
  hs_compile_error_t* error = nullptr;
  hs_expression_info(pattern.c_str(), kFlags, &info, &error);
  const Owned<hs_expr_info_t> owned(info);
  const Owned<hs_compile_error_t> ownedError(error);
  const bool isOrdered =
      info != nullptr && info->min_width > 0 && !info->unordered_matches && !info->matches_at_eod;
  if (!isOrdered || pattern.find_first_of("^$") != std::string::npos) return kRegexOfWholeText;
  for (const char* assertion : {"\\b", "\\B", "\\A", "\\Z", "\\z", "\\G", "(*"}) {
    if (pattern.find(assertion) != std::string::npos) return kRegexOfWholeText;
  }
  return kRegexOfAnyPlace;
}

int writeDatabase(const hs_database_t* database, char place) {
  char* bytes = nullptr;
  size_t length = 0;
  if (hs_serialize_database(database, &bytes, &length) != HS_SUCCESS) {
    return fail("it is too complex: not enough memory for its search program");
  }
  const Owned<char> owned(bytes);
  if (length > kMaxDatabaseBytes) {
    return fail("it is too complex: its search program has more than 8 MiB");
  }
  const bool written =
      std::putchar(place) != EOF && std::fwrite(bytes, 1, length, stdout) == length;
  return written && std::fflush(stdout) == 0 ? 0 : fail("cannot write the database");
}

int compile(const std::string& pattern) {
  if (pattern.empty()) return fail("the pattern is empty");
  if (pattern.size() > kMaxPatternBytes) return fail("the pattern is longer than 1024 bytes");
  if (pattern.find('\0') != std::string::npos) {
    return fail("the pattern contains a zero byte; write \\x00");
  }
  hs_database_t* database = nullptr;
  hs_compile_error_t* error = nullptr;
  hs_compile(pattern.c_str(), kFlags, HS_MODE_BLOCK, nullptr, &database, &error);
  const Owned<hs_database_t> ownedDatabase(database);
  const Owned<hs_compile_error_t> ownedError(error);
  if (database == nullptr) return fail(error->message);

  const double bytesPerSecond = worstSearchRate(database, pattern);
  if (bytesPerSecond < kLeastBytesPerSecond) {
    return fail("it is too slow: it would search only " +
                std::to_string(static_cast<int>(bytesPerSecond / 1e6)) +
                " MB/s; use smaller repetition counts");
  }
  return writeDatabase(database, placeOf(pattern));
}

}  // namespace
}  // namespace capfleet

int main() {
  capfleet::limitThisProcess(capfleet::kCpuSeconds);
  return capfleet::compile(capfleet::readPattern());
}
