// Patterns as the compile helper compiles them, and patterns generated for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "filter/regex_matcher.h"
#include "support/seed.h"
#include "support/temp_directory.h"

namespace capfleet::test {

/// The compile helper's output; empty if it rejects the pattern, which regex-compile.test.ts
/// covers.
inline Bytes tryCompiledPattern(const std::string& pattern) {
  const TempDirectory folder;
  const std::string in = folder.file("pattern", Bytes(pattern.begin(), pattern.end()));
  const std::string out = folder.path() + "/database";
  const std::string command =
      std::string(CAPFLEET_REGEX_COMPILE) + " < " + in + " > " + out + " 2> /dev/null";
  return std::system(command.c_str()) == 0 ? readFile(out) : Bytes{};
}

inline Bytes compiledPattern(const std::string& pattern) {
  Bytes bytes = tryCompiledPattern(pattern);
  EXPECT_FALSE(bytes.empty()) << pattern;
  return bytes;
}

inline std::shared_ptr<const RegexMatcher> matcherOf(const std::string& pattern) {
  auto matcher = RegexMatcher::load(compiledPattern(pattern));
  EXPECT_TRUE(matcher) << (matcher ? "" : matcher.error().message);
  return *matcher;
}

/// A pattern of few different bytes, so that it matches now and then; Hyperscan may reject it.
inline std::string randomPattern(std::mt19937_64& random, int depth = 3) {
  const auto one = [&](auto... texts) {
    const char* const all[] = {texts...};
    return std::string(all[randomBelow(random, sizeof...(texts))]);
  };
  if (depth == 0 || random() % 3 == 0) {
    return one("a", "b", "c", "ab", "ca", "abc", ".", "[ab]", "[^a]", "\\x00", "\\x00\\x00", "\\w",
               "\\s", "\\d", "[a-c]{2}", "^", "$", "\\b", "\\B", "\\A", "\\z", "(?i)A", "(?m)^a",
               "\\^", "\\$", "[$]");
  }
  const std::string inner = randomPattern(random, depth - 1);
  switch (random() % 4) {
    case 0:
      return inner + randomPattern(random, depth - 1);
    case 1:
      return "(" + inner + "|" + randomPattern(random, depth - 1) + ")";
    case 2:
      return "(" + inner + ")" + one("*", "+", "?", "{2}", "{1,3}", "{2,}");
    default:
      return inner + one("", ".*", ".{0,4}", "\\x00*") + randomPattern(random, depth - 1);
  }
}

}  // namespace capfleet::test
