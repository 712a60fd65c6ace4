#include "filter/regex_matcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/regex_helper.h"

namespace capfleet::test {
namespace {

bool matches(const std::string& pattern, const std::string& text) {
  const auto matcher = matcherOf(pattern);
  auto scratch = matcher->makeScratch();
  EXPECT_TRUE(scratch);
  return matcher->matches({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, *scratch);
}

TEST(RegexMatcher, finds_a_pattern_anywhere_in_the_bytes) {
  EXPECT_TRUE(matches("GET /[a-z]+", "xxGET /index"));
  EXPECT_FALSE(matches("GET /[a-z]+", "xxGET /7"));
  EXPECT_FALSE(matches("^GET", "xGET"));
  EXPECT_TRUE(matches("(?i)get", "xGeT"));
}

TEST(RegexMatcher, treats_the_packet_as_bytes) {
  EXPECT_TRUE(matches("a.b.c", std::string("xa\nb\0c", 6)));
  EXPECT_TRUE(matches("\\xff\\x00", std::string("\xff\0", 2)));
  EXPECT_TRUE(matches("^.$", "\xe9"));
  EXPECT_TRUE(matches("caf\xc3\xa9", "un caf\xc3\xa9"));
}

TEST(RegexMatcher, matches_every_packet_when_the_pattern_can_be_empty) {
  EXPECT_TRUE(matches("a*", "b"));
  EXPECT_TRUE(matches("a*", ""));
  EXPECT_FALSE(matches("a+", ""));
}

TEST(RegexMatcher, matches_anywhere_only_without_what_looks_around_a_match) {
  for (const char* pattern : {"abc", "a.*b", "[0-9]{3}-x", "(?i)get|post", "\\x00\\xff"}) {
    EXPECT_TRUE(matcherOf(pattern)->matchesAnywhere()) << pattern;
  }
  for (const char* pattern : {"^a", "a$", "\\ba", "a\\b", "a\\Bb", "\\Aa", "a\\z", "a\\Z", "(?m)^a",
                              "x|^a", "a*", "a|", "(*UTF8)a", "[^a]b"}) {
    EXPECT_FALSE(matcherOf(pattern)->matchesAnywhere()) << pattern;
  }
}

TEST(RegexMatcher, says_where_the_first_match_ends) {
  const auto firstEnd = [](const std::string& pattern, const std::string& text) {
    const auto matcher = matcherOf(pattern);
    auto scratch = matcher->makeScratch();
    return matcher->firstMatchEnd({reinterpret_cast<const uint8_t*>(text.data()), text.size()},
                                  *scratch);
  };
  EXPECT_EQ(firstEnd("b+c?", "aabbc"), 3u);
  EXPECT_EQ(firstEnd("(aabb|b)", "aabb"), 3u);
  EXPECT_EQ(firstEnd("x", "aabb"), std::nullopt);
  EXPECT_EQ(firstEnd("x", ""), std::nullopt);
}

TEST(RegexMatcher, refuses_a_database_that_is_cut_or_changed) {
  const Bytes whole = compiledPattern("abc|xyz[0-9]{3}");
  for (const size_t length : {size_t{0}, size_t{1}, size_t{10}, whole.size() - 1}) {
    const auto matcher = RegexMatcher::load({whole.data(), length});
    ASSERT_FALSE(matcher) << length;
    EXPECT_EQ(matcher.error().code, Code::kBadRegex);
  }
  Bytes changed = whole;
  changed[changed.size() / 2] ^= 1;
  EXPECT_FALSE(RegexMatcher::load(changed));
  EXPECT_FALSE(RegexMatcher::load({whole.data() + 1, whole.size() - 1}));
}

TEST(RegexMatcher, serves_several_threads_each_with_its_own_scratch) {
  const auto matcher = matcherOf("needle[0-9]+x");
  std::atomic<int> found = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; thread++) {
    threads.emplace_back([&matcher, &found] {
      auto scratch = matcher->makeScratch();
      const std::string text = "hay hay needle123x hay";
      for (int i = 0; i < 1000; i++) {
        const bool isWith = i % 2 == 0;
        const std::string packet = isWith ? text : text.substr(0, 14);
        const auto* bytes = reinterpret_cast<const uint8_t*>(packet.data());
        if (matcher->matches({bytes, packet.size()}, *scratch) == isWith) found++;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, 4000);
}

}  // namespace
}  // namespace capfleet::test
